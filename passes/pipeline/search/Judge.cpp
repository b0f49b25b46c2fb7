// SPDX-License-Identifier: Apache-2.0
#include "passes/pipeline/search/Judge.h"

#include "passes/pipeline/search/Pairing.h"
#include "passes/pipeline/timeline/Communication.h"
#include "passes/pipeline/timeline/GradientOrder.h"

#include <algorithm>

namespace rota::pipe {

Candidate Judge::judge(Timeline timeline) const {
  Candidate candidate;
  candidate.timeline = std::move(timeline);
  bool adds = request.communicates;
  std::optional<Simulation> simulation;
  if (!adds || hasPairs(candidate.timeline))
    simulation = simulate(candidate.timeline, request.costs);
  if (adds && (simulation || !hasPairs(candidate.timeline)))
    simulation = simulate(addCommunication(candidate.timeline, request.costs),
                          request.costs);
  if (!simulation)
    return candidate;
  for (const RankUsage &rank : simulation->ranks)
    candidate.activations = std::max(candidate.activations, rank.peakLive);
  bool fits =
      !request.activations || candidate.activations <= request.activations;
  if (fits && reorderedGradients(candidate.timeline).empty())
    candidate.makespan = simulation->makespan;
  return candidate;
}

void Judge::addPairs(Candidate &candidate) const {
  if (!mayPair())
    return;
  Candidate apart = candidate;
  for (PairOrder order :
       {PairOrder::ForwardFirst, PairOrder::BackwardFirst, PairOrder::Any}) {
    Candidate paired = judge(withPairs(apart.timeline, order));
    if (isLess(paired.makespan, candidate.makespan))
      candidate = std::move(paired);
  }
}

} // namespace rota::pipe
