// SPDX-License-Identifier: Apache-2.0
//
// Constraints of the ops that say where values live and of those that move
// them. Labels are those of the ops' descriptions.
#include "ir/rota/OpFamily.h"
#include "ir/rota/experts/CountedRows.h"
#include "ir/rota/sharding/Sharding.h"

using namespace mlir;
using namespace mlir::rota;

static SmallVector<AxisRefAttr> refs(ArrayAttr axes) {
  return llvm::to_vector(axes.getAsRange<AxisRefAttr>());
}

LogicalResult MeshOp::verify() {
  // C1: a module has at most one. The second complains.
  MeshOp first = meshOpOf(*this);
  if (first == *this)
    return success();
  auto diagnostic = emitOpError("expected one mesh in a module");
  diagnostic.attachNote(first.getLoc()) << "the other mesh";
  return diagnostic;
}

LogicalResult ConstrainOp::verify() {
  // C1: the sharding has an entry per dimension and fits the mesh.
  return verifySharding(*this, getSharding(), shapeOf(getValue()).size());
}

/// Checks that the shardings of a reshard have an entry per dimension and fit
/// the mesh, and that `to` is unreduced over no axis over which `from` is not.
static LogicalResult verifyShardings(Operation *op, ShardingAttr from,
                                     ShardingAttr to, int64_t rank) {
  if (failed(verifySharding(op, from, rank)) ||
      failed(verifySharding(op, to, rank)))
    return failure();
  for (AxisRefAttr ref : to.getUnreduced())
    if (!llvm::is_contained(from.getUnreduced(), ref))
      return op->emitOpError("expected a value that is unreduced over '")
             << stringifyMeshAxis(ref.getAxis()) << "' already";
  return success();
}

LogicalResult ReshardOp::verify() {
  // C1 and C2: the shardings.
  return verifyShardings(*this, getFrom(), getTo(), shapeOf(getValue()).size());
}

LogicalResult ReshardRowsOp::verify() {
  // C1, C2 and C3: counted rows.
  if (failed(verifyCountedRows(*this, getValue(), getSent(), getBlocks(),
                               getFill())))
    return failure();
  // C4: the shardings.
  return verifyShardings(*this, getFrom(), getTo(), shapeOf(getValue()).size());
}

/// C3: `axes` names parts of the mesh's axes, each at most once.
static LogicalResult verifyGroup(Operation *op, ArrayAttr axes) {
  SmallVector<AxisRefAttr> list = refs(axes);
  MeshAttr mesh = meshOf(op);
  for (auto [i, a] : llvm::enumerate(list))
    for (AxisRefAttr b : ArrayRef(list).take_front(i))
      if (a == b || overlap(a, b, mesh))
        return op->emitOpError("expected each axis at most once in a group, "
                               "got '")
               << stringifyMeshAxis(a.getAxis()) << "' twice";
  return verifyAxes(op, list);
}

/// Checks that `whole` is `part` but along `dim`, where the latter is the
/// ceiling of the former over the ranks of the group.
static LogicalResult verifyParts(Operation *op, ArrayRef<int64_t> whole,
                                 ArrayRef<int64_t> part, int64_t dim,
                                 ArrayAttr axes) {
  // C3: the group.
  if (failed(verifyGroup(op, axes)))
    return failure();
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

LogicalResult AllReduceOp::verify() {
  // C1: the group.
  return verifyGroup(*this, getAxes());
}

/// The `ranks` of a group divide what is cut along `split` and multiply what is
/// gathered along `gather`.
static LogicalResult verifyExchange(Operation *op, Value input, Value result,
                                    int64_t gather, int64_t split,
                                    int64_t ranks) {
  ArrayRef<int64_t> from = shapeOf(input);
  if (from[split] % ranks != 0)
    return op->emitOpError("expected ")
           << ranks << " ranks to divide size " << from[split]
           << " of dimension " << split;
  SmallVector<int64_t> expected(from);
  expected[split] /= ranks;
  expected[gather] *= ranks;
  return checkType(op, "a result", result, tensorOf(input).clone(expected));
}

LogicalResult AllToAllOp::verify() {
  // C3: the group.
  if (failed(verifyGroup(*this, getAxes())))
    return failure();
  int64_t gather = getGather(), split = getSplit(),
          rank = shapeOf(getInput()).size();
  // C1: `gather` and `split` are two dimensions.
  if (gather == split || gather < 0 || split < 0 || gather >= rank ||
      split >= rank || tensorOf(getResult()).getRank() != rank)
    return emitOpError("expected two dimensions below ")
           << rank << ", got " << gather << " and " << split;
  // C2: the sizes.
  return verifyExchange(*this, getInput(), getResult(), gather, split,
                        meshOf(*this).getSize(refs(getAxes())));
}

LogicalResult RaggedAllToAllOp::verify() {
  // C5: the group.
  if (failed(verifyGroup(*this, getAxes())))
    return failure();
  // C1: rows, and the dimension that is gathered.
  int64_t gather = getGather();
  if (failed(checkRank(*this, "rows", getInput(), 3)))
    return failure();
  if (gather < 0 || gather > 1)
    return emitOpError("expected to gather dimension 0 or 1, got ") << gather;
  // C2: the sizes.
  int64_t ranks = meshOf(*this).getSize(refs(getAxes()));
  if (failed(verifyExchange(*this, getInput(), getResult(), gather, 1 - gather,
                            ranks)))
    return failure();
  // C3 and C4: counts, those of a rank's blocks where rows are divided.
  bool gathersRows = gather == 1;
  Value rows = gathersRows ? getInput() : getResult();
  Value counts = gathersRows ? getSent() : getReceived();
  if (failed(verifyCountedRows(*this, rows, counts, getBlocks(), getFill())))
    return failure();
  int64_t experts = shapeOf(counts)[1] * ranks;
  return gathersRows ? checkShape(*this, "received counts", getReceived(),
                                  {shapeOf(getResult())[0], experts})
                     : checkShape(*this, "sent counts", getSent(),
                                  {shapeOf(getInput())[0], experts});
}

/// A shift is a position in the group.
static LogicalResult verifyShift(Operation *op, ArrayAttr axes, int64_t shift) {
  int64_t ranks = meshOf(op).getSize(refs(axes));
  if (shift < 0 || shift >= ranks)
    return op->emitOpError("expected a shift below the ")
           << ranks << " ranks of the group, got " << shift;
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
  // C2: the group.
  if (failed(verifyGroup(*this, getAxes())))
    return failure();
  // C3: the shift is a position.
  return verifyShift(*this, getAxes(), getShift());
}

LogicalResult ShardOffsetOp::verify() {
  // C1: the group.
  if (failed(verifyGroup(*this, getAxes())))
    return failure();
  // C2: the result is a scalar.
  if (!shapeOf(getResult()).empty())
    return emitOpError("expected a tensor of rank 0, got ")
           << getResult().getType();
  // C3: the shift is a position.
  return verifyShift(*this, getAxes(), getShift());
}

/// The sharding of a function's argument or result of type `type`.
static LogicalResult verifyShardingAttribute(Operation *op, Type type,
                                             NamedAttribute attribute) {
  if (attribute.getName() != RotaDialect::ShardingAttrHelper::getNameStr())
    return success();
  auto sharding = dyn_cast<ShardingAttr>(attribute.getValue());
  if (!sharding)
    return op->emitError("expected a '#rota.sharding' as 'rota.sharding', got ")
           << attribute.getValue();
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor)
    return op->emitError("expected a tensor where a sharding is, got ") << type;
  return verifySharding(op, sharding, tensor.getRank());
}

LogicalResult RotaDialect::verifyRegionArgAttribute(Operation *op, unsigned,
                                                    unsigned argument,
                                                    NamedAttribute attribute) {
  auto function = dyn_cast<FunctionOpInterface>(op);
  if (!function)
    return success();
  return verifyShardingAttribute(op, function.getArgumentTypes()[argument],
                                 attribute);
}

LogicalResult RotaDialect::verifyRegionResultAttribute(
    Operation *op, unsigned, unsigned result, NamedAttribute attribute) {
  auto function = dyn_cast<FunctionOpInterface>(op);
  if (!function)
    return success();
  return verifyShardingAttribute(op, function.getResultTypes()[result],
                                 attribute);
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
Cost RaggedAllToAllOp::getCost() { return streamingCost(*this, 0); }

TaskForm ShardOffsetOp::getTaskForm() { return TaskForm::Address; }
TaskForm RaggedAllToAllOp::getTaskForm() { return TaskForm::Collective; }

InPlacePairs AllReduceOp::getInPlacePairs() { return {{0, 0}}; }
