// SPDX-License-Identifier: Apache-2.0
#include "passes/shard/Pieces.h"

using namespace mlir;
using namespace mlir::rota;

static RankedTensorType typeOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}

int64_t Cut::copiedBytes(Value value) const {
  bool isStretch =
      ranks == 1 &&
      llvm::product_of(typeOf(value).getShape().take_front(dim)) == 1;
  return isStretch ? 0 : bytesOfTensor(value);
}

RankedTensorType Cut::pieceOf(Value value, int64_t pieces) const {
  SmallVector<int64_t> shape(typeOf(value).getShape());
  shape[dim] /= pieces;
  return typeOf(value).clone(shape);
}

static Value reshape(OpBuilder &builder, Value value, RankedTensorType type) {
  if (value.getType() == type)
    return value;
  return ReshapeOp::create(builder, value.getLoc(), type, value);
}

/// A tensor with the cut dimension as ranks and each rank's part of it.
static RankedTensorType byRanks(RankedTensorType type, Cut cut) {
  if (cut.ranks == 1)
    return type;
  SmallVector<int64_t> shape(type.getShape());
  shape[cut.dim] /= cut.ranks;
  shape.insert(shape.begin() + cut.dim, cut.ranks);
  return type.clone(shape);
}

/// The dimension of `byRanks` that pieces divide.
static int64_t dividedDim(Cut cut) {
  return cut.ranks == 1 ? cut.dim : cut.dim + 1;
}

SmallVector<Value> mlir::rota::cutPieces(OpBuilder &builder, Value value,
                                         Cut cut, int64_t pieces) {
  RankedTensorType piece = cut.pieceOf(value, pieces);
  SmallVector<Type> types(pieces, byRanks(piece, cut));
  Value whole = reshape(builder, value, byRanks(typeOf(value), cut));
  auto split =
      SplitOp::create(builder, value.getLoc(), types, whole, dividedDim(cut));
  SmallVector<Value> values;
  for (Value part : split.getParts())
    values.push_back(reshape(builder, part, piece));
  return values;
}

Value mlir::rota::joinPieces(OpBuilder &builder, Type type, Cut cut,
                             ArrayRef<Value> pieces) {
  SmallVector<Value> parts;
  for (Value piece : pieces)
    parts.push_back(reshape(builder, piece, byRanks(typeOf(piece), cut)));
  auto whole = cast<RankedTensorType>(type);
  Value joined = ConcatOp::create(builder, pieces.front().getLoc(),
                                  byRanks(whole, cut), parts, dividedDim(cut));
  return reshape(builder, joined, whole);
}

Value mlir::rota::pieceOfOp(OpBuilder &builder, Operation *op, unsigned operand,
                            Value piece, Cut result, int64_t pieces) {
  Operation *copy = builder.clone(*op);
  copy->setOperand(operand, piece);
  copy->getResult(0).setType(result.pieceOf(op->getResult(0), pieces));
  return copy->getResult(0);
}

PieceTimes mlir::rota::timesOfPieces(const Machine &machine,
                                     const Traffic &traffic, Operation *product,
                                     int64_t copied, int64_t pieces) {
  double work = machine.secondsOfOp(product);
  auto bytes = double(traffic.bytes), count = double(pieces);
  double latency = machine.secondsOfCollective(0, traffic.group);
  double piece = machine.secondsOfCollective(bytes / count, traffic.group);
  double beside = std::max(0.0, piece - work / count) + latency;
  return {machine.secondsOfCollective(bytes, traffic.group),
          piece + (count - 1) * beside + machine.secondsOfCopy(double(copied))};
}
