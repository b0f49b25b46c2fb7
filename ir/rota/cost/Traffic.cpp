// SPDX-License-Identifier: Apache-2.0
//
// The bytes that each kind of collective puts on the wire, and their time.
#include "ir/rota/cost/Traffic.h"
#include "ir/rota/sharding/Sharding.h"

using namespace mlir;
using namespace mlir::rota;

int64_t mlir::rota::bytesOfTensor(Value tensor) {
  auto type = cast<RankedTensorType>(tensor.getType());
  return type.getNumElements() *
         int64_t(llvm::divideCeil(type.getElementTypeBitWidth(), 8));
}

int64_t traffic::wireBytes(CollectiveKind kind, int64_t bytes, int64_t ranks) {
  switch (kind) {
  case CollectiveKind::AllGather:
    return allGather(bytes, ranks);
  case CollectiveKind::ReduceScatter:
    return reduceScatter(bytes, ranks);
  case CollectiveKind::AllReduce:
    return allReduce(bytes, ranks);
  case CollectiveKind::AllToAll:
    return allToAll(bytes, ranks);
  case CollectiveKind::Permute:
    return permute(bytes);
  case CollectiveKind::Slice:
    return 0;
  }
  return 0;
}

/// The bytes of a permutation and of an all-to-all do not pass from rank to
/// rank: each rank sends all of them at a time.
double traffic::secondsOf(CollectiveKind kind, int64_t bytes,
                          const MeshGroup &group, const Machine &machine) {
  if (bytes == 0)
    return 0;
  bool hasOneStep =
      kind == CollectiveKind::Permute || kind == CollectiveKind::AllToAll;
  return hasOneStep ? machine.secondsOfMessage(double(bytes), group)
                    : machine.secondsOfCollective(double(bytes), group);
}

Traffic mlir::rota::trafficOf(CollectiveOpInterface collective) {
  Traffic traffic;
  traffic.kind = collective.getCollectiveKind();
  traffic.axes =
      llvm::to_vector(collective.getAxes().getAsRange<AxisRefAttr>());
  traffic.ranks = meshOf(collective).getSize(traffic.axes);
  traffic.group = groupOf(traffic.axes, meshOf(collective));
  if (traffic.ranks == 1)
    return traffic;
  int64_t bytes = std::min(bytesOfTensor(collective->getOperand(0)),
                           bytesOfTensor(collective->getResult(0)));
  traffic.bytes =
      traffic::filled(traffic::wireBytes(traffic.kind, bytes, traffic.ranks),
                      collective.getExpectedFill());
  return traffic;
}
