// SPDX-License-Identifier: Apache-2.0
//
// The bytes that each collective op puts on the wire.
#include "ir/rota/cost/Traffic.h"
#include "ir/rota/experts/CountedRows.h"
#include "ir/rota/sharding/Sharding.h"

using namespace mlir;
using namespace mlir::rota;

int64_t mlir::rota::bytesOfTensor(Value tensor) {
  auto type = cast<RankedTensorType>(tensor.getType());
  return type.getNumElements() *
         int64_t(llvm::divideCeil(type.getElementTypeBitWidth(), 8));
}

int64_t AllGatherOp::getWireBytes(int64_t ranks) {
  return traffic::allGather(bytesOfTensor(getInput()), ranks);
}

int64_t ReduceScatterOp::getWireBytes(int64_t ranks) {
  return traffic::reduceScatter(bytesOfTensor(getResult()), ranks);
}

int64_t AllReduceOp::getWireBytes(int64_t ranks) {
  return traffic::allReduce(bytesOfTensor(getInput()), ranks);
}

int64_t AllToAllOp::getWireBytes(int64_t ranks) {
  return traffic::allToAll(bytesOfTensor(getInput()), ranks);
}

int64_t RaggedAllToAllOp::getWireBytes(int64_t ranks) {
  return traffic::filled(traffic::allToAll(bytesOfTensor(getInput()), ranks),
                         fillOf(getFill()));
}

int64_t ShardSliceOp::getWireBytes(int64_t) { return 0; }

int64_t PermuteOp::getWireBytes(int64_t) {
  return traffic::permute(bytesOfTensor(getInput()));
}

Traffic rota::trafficOf(CollectiveOpInterface collective) {
  Traffic traffic;
  traffic.axes =
      llvm::to_vector(collective.getAxes().getAsRange<AxisRefAttr>());
  traffic.ranks = meshOf(collective).getSize(traffic.axes);
  traffic.group = groupOf(traffic.axes, meshOf(collective));
  traffic.isRing = !isa<PermuteOp, AllToAllOp, RaggedAllToAllOp>(collective);
  if (traffic.ranks > 1)
    traffic.bytes = collective.getWireBytes(traffic.ranks);
  return traffic;
}
