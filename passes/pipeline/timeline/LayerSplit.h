// SPDX-License-Identifier: Apache-2.0
//
// The numbers of layers of the chunks of a pipeline.
#ifndef ROTA_PASSES_PIPELINE_TIMELINE_LAYERSPLIT_H
#define ROTA_PASSES_PIPELINE_TIMELINE_LAYERSPLIT_H

#include "passes/pipeline/timeline/Simulator.h"
#include "runtime/text/Names.h"

namespace rota {
namespace pipe {

/// The rule that divides layers over chunks where no numbers are given.
enum class LayerSplit { Even, Balanced };

} // namespace pipe
template <> struct Names<pipe::LayerSplit> {
  static constexpr const char *list[] = {"even", "balanced"};
};
} // namespace rota

namespace rota::pipe {

/// Costs of a part of a model, in any unit of time: of its forward, of the
/// cotangents of activations and of the gradients of parameters.
struct PartWork {
  double forward = 0, input = 0, weight = 0;

  PartWork() = default;
  PartWork(double forward, double input, double weight)
      : forward(forward), input(input), weight(weight) {}
  /// A part that trains as a whole.
  PartWork(double forward) : PartWork(forward, forward, forward) {}

  double all() const { return forward + input + weight; }
  PartWork &operator+=(const PartWork &other) {
    forward += other.forward;
    input += other.input;
    weight += other.weight;
    return *this;
  }
};

/// The work of a model's parts.
struct PartCosts {
  std::vector<PartWork> layers; // by layer of the stack
  PartWork embed, loss;
};

/// The least layers of each pipelined chunk: 0 of one that has the embedding or
/// the loss, else 1.
std::vector<int64_t> leastLayers(const Shape &shape);

/// The layers of each of several chunks, of which chunk i has `least[i]` (0 or
/// 1) at least; the sum of `least` is at most `layers`. Sizes differ by one at
/// most. The last chunk and the first, which have the loss and the embedding of
/// a model, are the first to have one layer less, then the chunks next to them.
std::vector<int64_t> splitEvenly(int64_t layers,
                                 const std::vector<int64_t> &least);

/// The costs of chunks of which chunk c has the next `counts[c]` layers. A
/// backward makes cotangents and gradients, I and W those of one sort;
/// transfers take no time.
CostTable tableOf(const PartCosts &costs, const std::vector<int64_t> &counts);

/// The simulated makespan of a timeline with the costs of `tableOf`; infinity
/// when it does not complete.
double makespanOf(const Timeline &timeline, const PartCosts &costs,
                  const std::vector<int64_t> &counts);

/// Moves layers between the chunks of `counts` until no move of one or two
/// layers makes the makespan of the timeline less, or kBalanceActions are
/// simulated. Each chunk keeps its least layers, the unpipelined chunk its
/// number.
std::vector<int64_t> balanceLayers(const Timeline &timeline,
                                   const PartCosts &costs,
                                   std::vector<int64_t> counts);
/// One or two seconds' work.
inline constexpr int64_t kBalanceActions = int64_t(1) << 21;

} // namespace rota::pipe

#endif // ROTA_PASSES_PIPELINE_TIMELINE_LAYERSPLIT_H
