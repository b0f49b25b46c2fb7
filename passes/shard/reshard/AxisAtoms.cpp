// SPDX-License-Identifier: Apache-2.0
//
// Cuts mesh axes at every boundary of a part that a sharding names.
#include "passes/shard/reshard/AxisAtoms.h"

#include "llvm/ADT/STLExtras.h"

#include <set>

using namespace mlir;
using namespace mlir::rota;

std::string AxisLayout::key() const {
  std::string key;
  for (const AtomList &dimension : dimensions) {
    key.append(dimension.begin(), dimension.end());
    key.push_back(char(0xff));
  }
  key.append(unreduced.begin(), unreduced.end());
  return key;
}

AtomList AxisLayout::dividing() const {
  AtomList atoms;
  for (const AtomList &dimension : dimensions)
    llvm::append_range(atoms, dimension);
  return atoms;
}

static SmallVector<AxisRefAttr> refsIn(ArrayRef<ShardingAttr> shardings) {
  SmallVector<AxisRefAttr> refs;
  for (ShardingAttr sharding : shardings) {
    llvm::append_range(refs, dividingAxes(sharding));
    llvm::append_range(refs, sharding.getUnreduced());
  }
  return refs;
}

std::optional<AxisAtoms> AxisAtoms::get(MeshAttr mesh,
                                        ArrayRef<ShardingAttr> shardings) {
  AxisAtoms atoms(mesh);
  SmallVector<AxisRefAttr> refs = refsIn(shardings);
  for (auto [number, whole] : llvm::enumerate(mesh.getSizes())) {
    auto axis = static_cast<MeshAxis>(number);
    // The sizes in front of the cuts.
    std::set<int64_t> cuts = {1, whole};
    bool isUsed = false;
    for (AxisRefAttr ref : refs) {
      if (ref.getAxis() != axis)
        continue;
      isUsed = true;
      if (!ref.isWhole())
        cuts.insert({ref.getBefore(), ref.getBefore() * ref.getSize()});
    }
    if (!isUsed)
      continue;
    for (auto cut = cuts.begin(); std::next(cut) != cuts.end(); ++cut) {
      int64_t next = *std::next(cut);
      if (next % *cut != 0)
        return std::nullopt;
      atoms.parts.push_back(
          AxisRefAttr::get(mesh.getContext(), axis, *cut, next / *cut));
      atoms.sizes.push_back(next / *cut);
    }
  }
  return atoms;
}

int64_t AxisAtoms::size(ArrayRef<Atom> atoms) const {
  int64_t product = 1;
  for (Atom atom : atoms)
    product *= sizes[atom];
  return product;
}

AtomList AxisAtoms::atomsOf(ArrayRef<AxisRefAttr> refs) const {
  AtomList atoms;
  for (AxisRefAttr ref : refs) {
    int64_t begin = ref.getBefore(), end = begin * mesh.getSize(ref);
    for (auto [atom, part] : llvm::enumerate(parts))
      if (part.getAxis() == ref.getAxis() && begin <= part.getBefore() &&
          part.getBefore() * part.getSize() <= end)
        atoms.push_back(Atom(atom));
  }
  return atoms;
}

AxisLayout AxisAtoms::layoutOf(ShardingAttr sharding) const {
  AxisLayout layout;
  for (DimensionShardingAttr dimension : sharding.getDimensions())
    layout.dimensions.push_back(atomsOf(dimension.getAxes()));
  layout.unreduced = atomsOf(sharding.getUnreduced());
  llvm::sort(layout.unreduced);
  return layout;
}

SmallVector<AxisRefAttr> AxisAtoms::refsOf(ArrayRef<Atom> atoms,
                                           bool merge) const {
  SmallVector<AxisRefAttr> refs;
  for (Atom atom : atoms) // whole where it is all of its axis
    llvm::append_range(refs, mergedAxes(parts[atom], mesh));
  return merge ? mergedAxes(refs, mesh) : refs;
}
