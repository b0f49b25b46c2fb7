// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/step/Loss.h"
#include "runtime/Error.h"
#include "runtime/train/step/LossGather.h"

#include <cmath>
#include <fmt/format.h>

namespace rota {

double Loss::mean() const {
  double all = main();
  for (double term : terms)
    all += overWeight(term);
  return all + auxiliary;
}

std::vector<LossPart> Loss::parts(const Program &program) const {
  if (program.lossTerms.empty())
    return {};
  std::vector<LossPart> all = {{"main", main()}};
  for (size_t t = 0; t < program.lossTerms.size(); ++t)
    all.push_back({program.lossTerms[t].name,
                   t < terms.size() ? overWeight(terms[t]) : 0.0});
  return all;
}

StepLosses stepLosses(Rank &rank) {
  const RuntimeMemory &places = rank.places();
  return {static_cast<const float *>(rank.runtimeAt(places.losses)),
          places.lossRows,
          rank.program().microbatches * rank.program().lossCalls,
          lossNumbers(rank.program())};
}

void startLoss(Rank &rank, int64_t accumulationStep) {
  LossGather losses(rank);
  losses.start(accumulationStep);
  losses.wait();
}

/// The auxiliary losses of a step out of their sums, [accumulationSteps * ranks
/// of the loss, auxiliaryCount], so added that the bits do not depend on the
/// schedule.
static double addAuxiliary(Rank &rank, const float *sums,
                           int64_t accumulationSteps, bool isSkipped) {
  const Program &program = rank.program();
  const RuntimeMemory &places = rank.places();
  std::vector<int> losses; // by sum
  for (const auto &[layer, ofLayer] : auxiliaryLayers(program))
    for (int64_t m = 0; m < program.microbatches; ++m)
      losses.insert(losses.end(), ofLayer.begin(), ofLayer.end());
  std::vector<double> totals(program.auxiliaryLosses.size());
  for (int64_t i = 0; i < places.auxiliaryCount; ++i)
    for (int64_t r = 0; r < accumulationSteps * places.lossRanks; ++r)
      totals[losses[i]] += sums[r * places.auxiliaryCount + i];
  double auxiliary = 0.0;
  for (size_t l = 0; l < totals.size(); ++l) {
    const AuxiliaryLoss &loss = program.auxiliaryLosses[l];
    auxiliary += loss.coefficient * totals[l] /
                 (loss.weight * static_cast<double>(accumulationSteps *
                                                    program.microbatches));
    if (!isSkipped && !std::isfinite(totals[l]))
      throw RunError(fmt::format("the auxiliary loss '{}' is not finite: {}",
                                 loss.name, totals[l]));
  }
  return auxiliary;
}

Loss gatherLoss(Rank &rank, int64_t accumulationSteps) {
  startLoss(rank, accumulationSteps - 1);
  const RuntimeMemory &places = rank.places();
  std::vector<char> result(static_cast<size_t>(places.resultBytes));
  rank.device().read(rank.runtimeAt(places.result), result.data(),
                     places.resultBytes);
  rank.rethrowFullExperts();
  return finishLoss(rank, result, accumulationSteps);
}

/// Adds the numbers of one call of the loss. Throws RunError where one is not
/// finite, unless the step `isSkipped`.
static void addLoss(const Program &program, const float *numbers, int rank,
                    size_t microbatch, bool isSkipped, Loss &total) {
  auto fail = [&](const std::string &what) {
    throw RunError(
        fmt::format("rank {}: the loss of microbatch {} is not finite ({})",
                    rank, microbatch, what));
  };
  if (!isSkipped && !(std::isfinite(numbers[0]) && std::isfinite(numbers[1])))
    fail(fmt::format("sum {}, weight {}", numbers[0], numbers[1]));
  total.sum += numbers[0];
  total.weight += numbers[1];
  total.terms.resize(program.lossTerms.size());
  for (size_t t = 0; t < total.terms.size(); ++t) {
    const LossTerm &term = program.lossTerms[t];
    if (!isSkipped && !std::isfinite(numbers[2 + t]))
      fail(fmt::format("term {} {}", term.name, numbers[2 + t]));
    total.terms[t] += term.coefficient * numbers[2 + t];
  }
}

Loss finishLoss(Rank &rank, std::span<const char> result,
                int64_t accumulationSteps, bool isSkipped) {
  const RuntimeMemory &places = rank.places();
  const Program &program = rank.program();
  auto calls = static_cast<size_t>(program.lossCalls);
  auto count = static_cast<size_t>(program.microbatches) * calls;
  auto numbers = static_cast<size_t>(lossNumbers(program));
  const RankGroup &group = rank.lossGroup();
  size_t ranks = group.ranks.size();
  auto numbersAt = [&](int64_t place) {
    return reinterpret_cast<const float *>(result.data() + place -
                                           places.result);
  };
  const float *all = numbersAt(places.losses);
  Loss total;
  for (size_t c = 0; c < static_cast<size_t>(accumulationSteps) * count; ++c)
    for (size_t r = 0; r < ranks; ++r) {
      size_t row = c / count * ranks + r;
      addLoss(program, &all[numbers * (row * count + c % count)],
              group.ranks[r], c / calls, isSkipped, total);
    }
  total.auxiliary = addAuxiliary(rank, numbersAt(places.auxiliary),
                                 accumulationSteps, isSkipped);
  if (total.weight < 0.0)
    throw RunError(fmt::format(
        "expected a weight of the loss that is not negative, got {}",
        total.weight));
  return total;
}

} // namespace rota
