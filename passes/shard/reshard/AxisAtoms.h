// SPDX-License-Identifier: Apache-2.0
//
// Shardings as lists of atoms: the largest parts of mesh axes that none of the
// shardings splits. The reshard planner searches in this form.
#ifndef ROTA_PASSES_SHARD_RESHARD_AXISATOMS_H
#define ROTA_PASSES_SHARD_RESHARD_AXISATOMS_H

#include "ir/rota/sharding/Sharding.h"

#include <optional>
#include <string>

namespace mlir::rota {

/// An index in AxisAtoms; atoms of one axis are neighbours, major first.
using Atom = uint8_t;
using AtomList = SmallVector<Atom, 4>;

/// A sharding as atoms. Atoms of size 1 are left out.
struct AxisLayout {
  SmallVector<AtomList, 4> dimensions; // major first
  AtomList unreduced;                  // ascending

  bool operator==(const AxisLayout &other) const = default;
  /// A key: layouts that differ have different keys.
  std::string key() const;
  /// The atoms of all dimensions, in order.
  AtomList dividing() const;
};

/// The atoms of some shardings of one mesh.
class AxisAtoms {
public:
  /// Nothing when two parts of an axis cross, as of size 2 and of size 3 of an
  /// axis of size 6: there are no common parts then.
  static std::optional<AxisAtoms> get(MeshAttr mesh,
                                      ArrayRef<ShardingAttr> shardings);

  int64_t size(Atom atom) const { return sizes[atom]; }
  int64_t size(ArrayRef<Atom> atoms) const;

  AxisLayout layoutOf(ShardingAttr sharding) const;
  /// The axes, and parts of axes, of the list; with `merge`, neighbouring parts
  /// that form a larger part are one.
  SmallVector<AxisRefAttr> refsOf(ArrayRef<Atom> atoms, bool merge) const;

private:
  explicit AxisAtoms(MeshAttr mesh) : mesh(mesh) {}
  AtomList atomsOf(ArrayRef<AxisRefAttr> refs) const;

  MeshAttr mesh;
  SmallVector<AxisRefAttr> parts; // never whole
  SmallVector<int64_t> sizes;
};

} // namespace mlir::rota

#endif // ROTA_PASSES_SHARD_RESHARD_AXISATOMS_H
