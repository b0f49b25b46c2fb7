// SPDX-License-Identifier: Apache-2.0
//
// The bytes that collectives send.
//
// The model is a ring, which is also the least that any algorithm needs for all
// but AllReduce of tiny tensors (Thakur, Rabenseifner and Gropp 2005, section
// 3): each of n ranks sends to its neighbour and receives as much. All numbers
// are bytes that one rank sends.
#ifndef ROTA_IR_ROTA_COST_TRAFFIC_H
#define ROTA_IR_ROTA_COST_TRAFFIC_H

#include "ir/rota/cost/Machine.h"
#include "llvm/Support/MathExtras.h"

namespace mlir::rota {

/// The cost of one execution of a collective for one rank.
struct Traffic {
  CollectiveKind kind = CollectiveKind::Slice;
  int64_t bytes = 0; // sent by the rank, and received
  int64_t ranks = 1; // in its group
  SmallVector<AxisRefAttr> axes;
  MeshGroup group;
};

/// Bytes of a tensor, undivided where its type is.
int64_t bytesOfTensor(Value tensor);

/// The traffic of a collective op on the mesh of its module.
Traffic trafficOf(CollectiveOpInterface collective);

namespace traffic {

/// Each rank passes on every part but one. `part`: bytes of one rank's part.
inline int64_t allGather(int64_t part, int64_t ranks) {
  return (ranks - 1) * part;
}

/// An all-gather backwards. `part`: bytes of one rank's part of the sum.
inline int64_t reduceScatter(int64_t part, int64_t ranks) {
  return (ranks - 1) * part;
}

/// A reduce-scatter and an all-gather of its parts. `whole`: bytes of the
/// tensor.
inline int64_t allReduce(int64_t whole, int64_t ranks) {
  return 2 * (ranks - 1) * int64_t(llvm::divideCeil(whole, ranks));
}

/// Each rank keeps its own part of its value. `local`: bytes of the value.
inline int64_t allToAll(int64_t local, int64_t ranks) {
  return local - local / ranks;
}

/// The part `fill` of `bytes` is expected to travel.
inline int64_t filled(int64_t bytes, double fill) {
  return int64_t(double(bytes) * fill);
}

/// Each rank sends all of its value. `local`: bytes of it.
inline int64_t permute(int64_t local) { return local; }

/// The formula of the kind. `bytes`: the smaller of a rank's source and
/// destination, which is what the formulas ask for.
int64_t wireBytes(CollectiveKind kind, int64_t bytes, int64_t ranks);

/// Seconds of a collective in which a rank sends `bytes`; 0 where nothing
/// travels.
double secondsOf(CollectiveKind kind, int64_t bytes, const MeshGroup &group,
                 const Machine &machine);

} // namespace traffic
} // namespace mlir::rota

#endif // ROTA_IR_ROTA_COST_TRAFFIC_H
