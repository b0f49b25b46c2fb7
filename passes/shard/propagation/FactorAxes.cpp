// SPDX-License-Identifier: Apache-2.0
//
// Axes of dimensions and of factors.
#include "passes/shard/propagation/FactorAxes.h"

using namespace mlir;
using namespace mlir::rota;

/// The part of `ref`'s axis that has a part of `before` in front.
static AxisRefAttr part(AxisRefAttr ref, int64_t before, int64_t size,
                        MeshAttr mesh) {
  if (before == 1 && size == mesh.getSize(ref.getAxis()))
    return AxisRefAttr::get(ref.getContext(), ref.getAxis());
  return AxisRefAttr::get(ref.getContext(), ref.getAxis(), before, size);
}

/// Splits `ref` into its major part of this size and the rest.
static std::pair<AxisRefAttr, AxisRefAttr> cut(AxisRefAttr ref, int64_t size,
                                               MeshAttr mesh) {
  return {part(ref, ref.getBefore(), size, mesh),
          part(ref, ref.getBefore() * size, mesh.getSize(ref) / size, mesh)};
}

AxisList mlir::rota::normalized(ArrayRef<AxisRefAttr> axes, MeshAttr mesh) {
  return AxisList(mergedAxes(axes, mesh));
}

AxisList mlir::rota::normalizedSet(ArrayRef<AxisRefAttr> axes, MeshAttr mesh) {
  AxisList sorted(axes);
  llvm::sort(sorted, [](AxisRefAttr a, AxisRefAttr b) {
    return std::tuple(a.getAxis(), a.getBefore(), a.getSize()) <
           std::tuple(b.getAxis(), b.getBefore(), b.getSize());
  });
  sorted.erase(llvm::unique(sorted), sorted.end());
  return normalized(sorted, mesh);
}

/// The places at which some axis of `lists` begins or ends, by axis.
static SmallVector<int64_t> boundaries(MeshAxis axis,
                                       ArrayRef<ArrayRef<AxisRefAttr>> lists,
                                       MeshAttr mesh) {
  SmallVector<int64_t> places;
  for (ArrayRef<AxisRefAttr> list : lists)
    for (AxisRefAttr ref : list)
      if (ref.getAxis() == axis)
        places.append({ref.getBefore(), ref.getBefore() * mesh.getSize(ref)});
  llvm::sort(places);
  places.erase(llvm::unique(places), places.end());
  return places;
}

/// True when `piece` is a part of one of `axes`. Parts of an axis of size 6
/// that have sizes 2 and 3 overlap, and neither is a part of the other.
static bool isPartOf(AxisRefAttr piece, ArrayRef<AxisRefAttr> axes,
                     MeshAttr mesh) {
  int64_t end = piece.getBefore() * mesh.getSize(piece);
  return llvm::any_of(axes, [&](AxisRefAttr ref) {
    return ref.getAxis() == piece.getAxis() &&
           piece.getBefore() % ref.getBefore() == 0 &&
           ref.getBefore() * mesh.getSize(ref) % end == 0;
  });
}

/// The parts of `a` that are parts of `b` or, with `outside`, those that do not
/// overlap with `b`.
static AxisList select(ArrayRef<AxisRefAttr> a, ArrayRef<AxisRefAttr> b,
                       bool outside, MeshAttr mesh) {
  AxisList result;
  for (AxisRefAttr ref : a) {
    int64_t end = ref.getBefore() * mesh.getSize(ref);
    SmallVector<int64_t> places = boundaries(ref.getAxis(), {a, b}, mesh);
    for (auto [from, to] : llvm::zip(places, llvm::drop_begin(places))) {
      if (from < ref.getBefore() || to > end || to % from != 0)
        continue;
      AxisRefAttr piece = part(ref, from, to / from, mesh);
      if (isPartOf(piece, a, mesh) &&
          (outside ? !overlapsAny(piece, b, mesh) : isPartOf(piece, b, mesh)))
        result.push_back(piece);
    }
  }
  return normalizedSet(result, mesh);
}

AxisList mlir::rota::intersection(ArrayRef<AxisRefAttr> a,
                                  ArrayRef<AxisRefAttr> b, MeshAttr mesh) {
  return select(a, b, /*outside=*/false, mesh);
}

AxisList mlir::rota::difference(ArrayRef<AxisRefAttr> a,
                                ArrayRef<AxisRefAttr> b, MeshAttr mesh) {
  return select(a, b, /*outside=*/true, mesh);
}

bool mlir::rota::isPrefix(ArrayRef<AxisRefAttr> shorter,
                          ArrayRef<AxisRefAttr> longer, MeshAttr mesh) {
  AxisList rest = normalized(longer, mesh);
  size_t next = 0;
  for (AxisRefAttr ref : normalized(shorter, mesh)) {
    if (next == rest.size())
      return false;
    AxisRefAttr other = rest[next];
    int64_t size = mesh.getSize(ref), otherSize = mesh.getSize(other);
    if (ref.getAxis() != other.getAxis() ||
        ref.getBefore() != other.getBefore() || otherSize % size != 0)
      return false;
    if (size == otherSize)
      ++next;
    else
      rest[next] = cut(other, size, mesh).second;
  }
  return true;
}

bool mlir::rota::overlapsAny(AxisRefAttr ref, ArrayRef<AxisRefAttr> axes,
                             MeshAttr mesh) {
  return llvm::any_of(
      axes, [&](AxisRefAttr other) { return overlap(ref, other, mesh); });
}

DimensionAxes mlir::rota::dimensionAxes(ShardingAttr sharding, MeshAttr mesh) {
  return llvm::map_to_vector(sharding.getDimensions(),
                             [&](DimensionShardingAttr dimension) {
                               return normalized(dimension.getAxes(), mesh);
                             });
}

ShardingAttr mlir::rota::makeSharding(MLIRContext *context,
                                      ArrayRef<AxisList> dimensions,
                                      ArrayRef<AxisRefAttr> unreduced,
                                      MeshAttr mesh) {
  auto divided = llvm::map_to_vector(dimensions, [&](const AxisList &axes) {
    return DimensionShardingAttr::get(context, normalized(axes, mesh),
                                      /*open=*/false);
  });
  return ShardingAttr::get(context, divided, normalizedSet(unreduced, mesh),
                           {});
}

/// A rule in which nothing is divided.
static FactorRule wholeRule(Operation *op) {
  FactorRule rule;
  auto dimensions = [&](Value value) {
    FactorRule::Dimensions result;
    if (auto tensor = dyn_cast<RankedTensorType>(value.getType()))
      for (int64_t size : tensor.getShape()) {
        rule.indivisible.push_back(rule.sizes.size());
        result.push_back({int64_t(rule.sizes.size())});
        rule.sizes.push_back(size);
      }
    return result;
  };
  for (Value operand : op->getOperands())
    rule.operands.push_back(dimensions(operand));
  for (Value result : op->getResults())
    rule.results.push_back(dimensions(result));
  return rule;
}

FactorRule mlir::rota::divisionRule(Operation *op) {
  auto ruled = dyn_cast<FactorRuleOpInterface>(op);
  if (!ruled)
    return wholeRule(op);
  FactorRule rule = ruled.getFactorRule();
  if (isa<PartitionOpInterface>(op))
    llvm::erase_if(rule.indivisible, [&](int64_t factor) {
      return llvm::is_contained(rule.numbered, factor);
    });
  return rule;
}

FactorRule mlir::rota::rowDivisionRule(Operation *op) {
  FactorRule rule = divisionRule(op);
  if (isa<DecomposableOpInterface>(op))
    rule.indivisible.clear();
  return rule;
}

FactorAxes mlir::rota::projectFactors(const FactorRule &rule,
                                      const FactorRule::Dimensions &tensor,
                                      ArrayRef<AxisList> dimensions,
                                      MeshAttr mesh) {
  FactorAxes result(rule.sizes.size());
  for (auto [factors, axes] : llvm::zip(tensor, dimensions)) {
    SmallVector<AxisRefAttr> rest(llvm::reverse(axes));
    for (int64_t factor : factors) {
      int64_t left =
          llvm::is_contained(rule.indivisible, factor) ? 1 : rule.sizes[factor];
      bool mayPad =
          factors.size() == 1 && llvm::is_contained(rule.padded, factor);
      while (left > 1 && !rest.empty()) {
        AxisRefAttr ref = rest.back();
        int64_t size = mesh.getSize(ref);
        if (left % size != 0 && mayPad) {
          result[factor].push_back(ref);
          rest.pop_back();
          left = llvm::divideCeil(left, size);
          continue;
        }
        if (left % size != 0 && size % left != 0)
          break;
        rest.pop_back();
        if (left % size != 0) {
          auto [major, minor] = cut(ref, left, mesh);
          rest.push_back(minor);
          ref = major;
          size = left;
        }
        result[factor].push_back(ref);
        left /= size;
      }
      // The next factor is minor to this one: it may follow only where this
      // one is divided to single elements.
      if (left > 1 || llvm::is_contained(rule.indivisible, factor))
        if (rule.sizes[factor] > 1)
          break;
    }
  }
  return result;
}

DimensionAxes
mlir::rota::composeDimensions(const FactorRule::Dimensions &tensor,
                              const FactorAxes &factors, MeshAttr mesh) {
  return llvm::map_to_vector(tensor, [&](ArrayRef<int64_t> dimension) {
    AxisList axes;
    for (int64_t factor : dimension)
      llvm::append_range(axes, factors[factor]);
    return normalized(axes, mesh);
  });
}

void mlir::rota::dropStrided(const FactorRule &rule, FactorAxes &factors,
                             MeshAttr mesh) {
  auto dropIn = [&](const FactorRule::Dimensions &tensor) {
    bool dropped = false;
    for (ArrayRef<int64_t> dimension : tensor) {
      bool whole = false;
      for (int64_t factor : dimension) {
        if (whole && !factors[factor].empty()) {
          factors[factor].clear();
          dropped = true;
        }
        whole |= mesh.getSize(factors[factor]) != rule.sizes[factor];
      }
    }
    return dropped;
  };
  bool dropped = true;
  while (dropped) {
    dropped = false;
    for (const auto &tensor : llvm::concat<const FactorRule::Dimensions>(
             rule.operands, rule.results))
      dropped |= dropIn(tensor);
  }
}

AxisList mlir::rota::summedAxes(const FactorRule &rule, unsigned result,
                                const FactorAxes &factors, MeshAttr mesh) {
  auto has = [](const FactorRule::Dimensions &tensor, int64_t factor) {
    return llvm::any_of(tensor, [&](ArrayRef<int64_t> dimension) {
      return llvm::is_contained(dimension, factor);
    });
  };
  AxisList axes;
  for (int64_t factor = 0, end = rule.sizes.size(); factor < end; ++factor) {
    if (llvm::is_contained(rule.combined, factor) ||
        has(rule.results[result], factor))
      continue;
    if (llvm::any_of(rule.operands,
                     [&](const auto &tensor) { return has(tensor, factor); }))
      llvm::append_range(axes, factors[factor]);
  }
  return normalizedSet(axes, mesh);
}

double mlir::rota::partFlops(Operation *op, const FactorAxes &factors,
                             MeshAttr mesh) {
  auto priced = dyn_cast<CostOpInterface>(op);
  if (!priced)
    return 0;
  double flops = priced.getCost().flops;
  for (const AxisList &axes : factors)
    flops /= double(mesh.getSize(axes));
  return flops;
}

FactorAxes mlir::rota::readFactors(Operation *op, const FactorRule &rule) {
  FactorAxes factors(rule.sizes.size());
  auto written = RotaDialect::FactorsAttrHelper(op->getContext()).getAttr(op);
  if (!written)
    return factors;
  for (auto [axes, division] :
       llvm::zip(factors, written.getAsRange<DimensionShardingAttr>()))
    llvm::append_range(axes, division.getAxes());
  return factors;
}

void mlir::rota::writeFactors(Operation *op, const FactorAxes &factors,
                              MeshAttr mesh) {
  MLIRContext *context = op->getContext();
  eraseFactors(op);
  if (llvm::all_of(factors, [](const AxisList &axes) { return axes.empty(); }))
    return;
  auto divisions =
      llvm::map_to_vector(factors, [&](const AxisList &axes) -> Attribute {
        return DimensionShardingAttr::get(context, normalized(axes, mesh),
                                          /*open=*/false);
      });
  RotaDialect::FactorsAttrHelper(context).setAttr(
      op, ArrayAttr::get(context, divisions));
}

void mlir::rota::eraseFactors(Operation *op) {
  op->removeAttr(RotaDialect::FactorsAttrHelper::getNameStr());
}
