// SPDX-License-Identifier: Apache-2.0
//
// Constraints of the ops that say where values live and of those that move
// them. Labels are those of the ops' descriptions.
#include "ir/rota/Rules.h"
#include "ir/rota/Sharding.h"

using namespace mlir;
using namespace mlir::rota;

static ArrayRef<int64_t> shapeOf(Value value) {
  return cast<RankedTensorType>(value.getType()).getShape();
}

static SmallVector<AxisRefAttr> refs(ArrayAttr axes) {
  return llvm::to_vector(axes.getAsRange<AxisRefAttr>());
}

static LogicalResult verifyEntries(Operation *op, Value value,
                                   ShardingAttr sharding) {
  int64_t rank = shapeOf(value).size(),
          entries = sharding.getDimensions().size();
  if (rank != entries)
    return op->emitOpError("expected a sharding with an entry for each of the ")
           << rank << " dimensions, got " << entries;
  return success();
}

LogicalResult ConstrainOp::verify() {
  // C1: the sharding has an entry per dimension.
  return verifyEntries(*this, getValue(), getSharding());
}

LogicalResult ReshardOp::verify() {
  // C1: both shardings have an entry per dimension.
  if (failed(verifyEntries(*this, getValue(), getFrom())) ||
      failed(verifyEntries(*this, getValue(), getTo())))
    return failure();
  // C2: `to` is unreduced over no axis over which `from` is not.
  for (AxisRefAttr ref : getTo().getUnreduced())
    if (!llvm::is_contained(getFrom().getUnreduced(), ref))
      return emitOpError("expected a value that is unreduced over '")
             << stringifyMeshAxis(ref.getAxis()) << "' already";
  return success();
}

/// Checks that `whole` is `part` but along `dim`, where the latter is the
/// ceiling of the former over the ranks of the group.
static LogicalResult verifyParts(Operation *op, ArrayRef<int64_t> whole,
                                 ArrayRef<int64_t> part, int64_t dim,
                                 ArrayAttr axes) {
  // C1: `dim` is a dimension; the others keep their sizes.
  if (dim < 0 || dim >= int64_t(whole.size()))
    return op->emitOpError("expected a dimension below ")
           << whole.size() << ", got " << dim;
  if (whole.size() != part.size())
    return op->emitOpError("expected operand and result of one rank");
  // C2: the part's size is the ceiling of the whole's over the group.
  int64_t ranks = meshOf(op).getSize(refs(axes));
  for (auto [i, size] : llvm::enumerate(whole)) {
    int64_t expected = int64_t(i) == dim ? llvm::divideCeil(size, ranks) : size;
    if (part[i] != expected)
      return op->emitOpError("expected a part of size ")
             << expected << " along dimension " << i << " of size " << size
             << ", got " << part[i];
  }
  return success();
}

LogicalResult AllGatherOp::verify() {
  return verifyParts(*this, shapeOf(getResult()), shapeOf(getInput()), getDim(),
                     getAxes());
}

LogicalResult ReduceScatterOp::verify() {
  return verifyParts(*this, shapeOf(getInput()), shapeOf(getResult()), getDim(),
                     getAxes());
}

LogicalResult ShardSliceOp::verify() {
  return verifyParts(*this, shapeOf(getInput()), shapeOf(getResult()), getDim(),
                     getAxes());
}

LogicalResult AllReduceOp::verify() { return success(); }

LogicalResult AllToAllOp::verify() {
  ArrayRef<int64_t> from = shapeOf(getInput()), to = shapeOf(getResult());
  int64_t gather = getGather(), split = getSplit(), rank = from.size();
  // C1: `gather` and `split` are two dimensions.
  if (gather == split || gather < 0 || split < 0 || gather >= rank ||
      split >= rank || to.size() != from.size())
    return emitOpError("expected two dimensions below ")
           << rank << ", got " << gather << " and " << split;
  // C2: the group's ranks divide what is cut and multiply what is gathered.
  int64_t ranks = meshOf(*this).getSize(refs(getAxes()));
  if (from[split] % ranks != 0)
    return emitOpError("expected ") << ranks << " ranks to divide size "
                                    << from[split] << " of dimension " << split;
  SmallVector<int64_t> expected(from);
  expected[split] /= ranks;
  expected[gather] *= ranks;
  if (ArrayRef<int64_t>(expected) != to)
    return emitOpError("expected a result of type ")
           << cast<RankedTensorType>(getInput().getType()).clone(expected)
           << ", got " << getResult().getType();
  return success();
}

LogicalResult PermuteOp::verify() {
  // C1: `order` has the axes of `axes`.
  auto sorted = [](ArrayAttr axes) {
    SmallVector<AxisRefAttr> list = refs(axes);
    llvm::sort(list, [](AxisRefAttr a, AxisRefAttr b) {
      return std::tuple(a.getAxis(), a.getBefore()) <
             std::tuple(b.getAxis(), b.getBefore());
    });
    return list;
  };
  if (sorted(getAxes()) != sorted(getOrder()))
    return emitOpError("expected the same axes in 'axes' and 'order'");
  return success();
}

//===----------------------------------------------------------------------===//
// Rules
//===----------------------------------------------------------------------===//

FailureOr<SmallVector<Value>> ConstrainOp::vjp(OpBuilder &builder,
                                               ValueRange cotangents,
                                               ArrayRef<bool> needed) {
  if (!cotangents[0] || !needed[0])
    return SmallVector<Value>{Value()};
  return SmallVector<Value>{
      create(builder, getLoc(), cotangents[0], getSharding())};
}

FactorRule ConstrainOp::getFactorRule() { return elementwiseFactorRule(*this); }

Cost ConstrainOp::getCost() { return {}; }
Cost AllGatherOp::getCost() { return streamingCost(*this, 0); }
Cost ReduceScatterOp::getCost() { return streamingCost(*this, 0); }
Cost AllReduceOp::getCost() { return streamingCost(*this, 0); }
Cost AllToAllOp::getCost() { return streamingCost(*this, 0); }
Cost ShardSliceOp::getCost() { return streamingCost(*this, 0); }
Cost PermuteOp::getCost() { return streamingCost(*this, 0); }
