// SPDX-License-Identifier: Apache-2.0
//
// Finds the cheapest communication that turns one sharding of a value into
// another.
#ifndef ROTA_PASSES_SHARD_RESHARD_RESHARDPLANNER_H
#define ROTA_PASSES_SHARD_RESHARD_RESHARDPLANNER_H

#include "ir/rota/Rota.h"

namespace mlir::rota {

struct Machine; // ir/rota/cost/Machine.h

/// The cost of communication for one rank.
struct ReshardCost {
  /// A message's fixed cost in bytes: about 10 us at 6.5 GB/s.
  static constexpr int64_t messageBytes = 64 * 1024;

  int64_t bytes = 0;    // over the wire, ring model (ir/rota/cost/Traffic.h)
  int64_t messages = 0; // collectives that communicate
  int64_t steps = 0;    // slices included; breaks ties

  int64_t weight() const { return bytes + messages * messageBytes; }
  bool operator<(const ReshardCost &other) const {
    return std::tuple(weight(), steps) <
           std::tuple(other.weight(), other.steps);
  }
  ReshardCost operator+(const ReshardCost &other) const {
    return {bytes + other.bytes, messages + other.messages,
            steps + other.steps};
  }
};

/// One collective op.
struct ReshardStep {
  CollectiveKind kind = CollectiveKind::AllGather;
  SmallVector<AxisRefAttr> axes;
  SmallVector<AxisRefAttr> order; // Permute
  int64_t dim = -1;               // gathered (AllGather, AllToAll) or sliced
  int64_t split = -1;             // AllToAll: sliced
  bool isRagged = false;          // AllToAll of rows that are filled
  SmallVector<int64_t> shape;     // shape of the result on one rank
  ReshardCost cost;
};

struct ReshardPlan {
  SmallVector<ReshardStep> steps;
  ReshardCost cost() const;
  /// The weight of the cost on this machine: bytes through slower levels of its
  /// network count as many as a rank sends to its nearest neighbours in their
  /// time.
  double weightOn(const Machine &machine, MeshAttr mesh) const;
};

/// The cheapest steps from `from` to `to` for a tensor of type `whole`.
///
/// The plan is the shortest path between layouts (the atoms of axes that divide
/// each dimension, and those over which the value is a sum) whose moves are the
/// collectives, on as many axes at once as one op can; sizes of axes enter
/// costs only, so that planning time does not depend on them. A size that
/// its axes do not divide is only cut into the parts of `#rota.sharding`. Axes
/// that come first in a dimension both before and after stay.
/// Never costs more than `gatherAll`, which it returns when parts of an axis
/// cross or the search exceeds its bounds. Equal costs are decided by the
/// number of steps and then by the order of axes and dimensions, so that the
/// plan is deterministic.
///
/// Both shardings have an entry per dimension and `to` is unreduced over axes
/// only over which `from` is (rota.reshard C1, C2). Open dimensions and
/// replicated axes mean nothing here.
///
/// With a `fill`, the value is counted rows [B, R, E]
/// (ir/rota/experts/CountedRows.h). An all-to-all that moves the division
/// between sequences and rows in one step sends that part of its bytes.
ReshardPlan planReshard(RankedTensorType whole, ShardingAttr from,
                        ShardingAttr to, MeshAttr mesh,
                        std::optional<double> fill = std::nullopt);

/// A plan without a search: an all-reduce, then an all-gather of each dimension
/// that changes, then a slice of each.
ReshardPlan gatherAll(RankedTensorType whole, ShardingAttr from,
                      ShardingAttr to, MeshAttr mesh);

/// The counts of a plan of counted rows: this rank's parts of them, divided as
/// the rows are before and after, and its blocks where rows are divided.
struct ReshardCounts {
  Value sent, received;
  int64_t blocks = 1;
  FloatAttr fill;
};

/// Builds the ops of `plan` on `local`, this rank's part as the plan's `from`
/// says; returns its part as `to` says. Plans with a fill need `counts`.
Value emitReshard(OpBuilder &builder, Location loc, Value local,
                  const ReshardPlan &plan, StringRef reason,
                  const ReshardCounts &counts = {});

} // namespace mlir::rota

#endif // ROTA_PASSES_SHARD_RESHARD_RESHARDPLANNER_H
