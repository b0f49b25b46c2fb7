// SPDX-License-Identifier: Apache-2.0
//
// Reads collectives off ops.
#include "lowering/executable/Collectives.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::rota;

namespace rota::lowering {

ElementType elementTypeOf(Type type) {
  Type element = getElementTypeOrSelf(type);
  return element.isInteger() ? ElementType::I32
         : element.isBF16()  ? ElementType::BF16
                             : ElementType::F32;
}

static ArrayRef<int64_t> shapeOf(Value value) {
  return cast<RankedTensorType>(value.getType()).getShape();
}

static int64_t product(ArrayRef<int64_t> sizes) {
  return llvm::product_of(sizes);
}

void setExtents(ArrayRef<int64_t> shape, int64_t dim, Collective &collective) {
  collective.outer = product(shape.take_front(dim));
  collective.size = shape[dim];
  collective.inner = product(shape.drop_front(dim + 1));
}

/// All elements as one dimension.
static void setElements(ArrayRef<int64_t> shape, Collective &collective) {
  collective.outer = collective.inner = 1;
  collective.size = product(shape);
}

/// An all-to-all of `input` that cuts along `split`.
static void setSplit(Value input, int64_t dim, Collective &collective) {
  Collective split;
  setExtents(shapeOf(input), dim, split);
  collective.splitOuter = split.outer;
  collective.splitSize = split.size;
  collective.splitInner = split.inner;
}

RotaRowExchange rowExchangeOf(RaggedAllToAllOp op) {
  bool gathersRows = op.getGather() == 1;
  Value whole = gathersRows ? op.getResult() : op.getInput();
  Value divided = gathersRows ? op.getInput() : op.getResult();
  Value counts = gathersRows ? op.getSent() : op.getReceived();
  ArrayRef<int64_t> part = shapeOf(divided);
  RotaRowExchange exchange = {};
  exchange.sequences = shapeOf(whole)[0];
  exchange.blocks = op.getBlocks();
  exchange.rows = part[1] / exchange.blocks;
  exchange.experts = shapeOf(counts)[1] / exchange.blocks;
  exchange.rowBytes =
      part[2] * byteSize(elementTypeOf(op.getResult().getType()));
  exchange.gathersRows = gathersRows;
  return exchange;
}

int CollectiveTable::add(Collective collective) {
  auto found = llvm::find(list, collective);
  if (found == list.end())
    found = list.insert(list.end(), std::move(collective));
  return int(found - list.begin());
}

int CollectiveTable::add(CollectiveOpInterface op) {
  Collective c;
  c.kind = op.getCollectiveKind();
  c.type = elementTypeOf(op->getResultTypes()[0]);
  c.axes = programMesh.axesOf(op.getAxes());
  c.reason = op.getReason().str();
  llvm::TypeSwitch<Operation *>(op)
      .Case([&](AllGatherOp op) {
        setExtents(shapeOf(op.getResult()), op.getDim(), c);
      })
      .Case<ReduceScatterOp, ShardSliceOp>(
          [&](auto op) { setExtents(shapeOf(op.getInput()), op.getDim(), c); })
      .Case([&](AllReduceOp op) {
        setElements(shapeOf(op.getInput()), c);
        c.maximum = op.getKind() == ReduceKind::Max;
      })
      .Case([&](AllToAllOp op) {
        setExtents(shapeOf(op.getResult()), op.getGather(), c);
        setSplit(op.getInput(), op.getSplit(), c);
      })
      .Case([&](RaggedAllToAllOp op) {
        setExtents(shapeOf(op.getResult()), op.getGather(), c);
        setSplit(op.getInput(), 1 - op.getGather(), c);
      })
      .Case([&](PermuteOp op) {
        setElements(shapeOf(op.getInput()), c);
        c.order = programMesh.axesOf(op.getOrder());
        c.shift = int64_t(op.getShift());
        c.mirrored = op.getMirrored();
      });
  return add(std::move(c));
}

} // namespace rota::lowering
