// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/step/Gather.h"
#include "runtime/Error.h"
#include "runtime/program/Part.h"
#include "runtime/train/step/Executor.h"
#include "runtime/train/step/LossGather.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fmt/format.h>
#include <utility>

namespace rota {

/// Starts bringing `own` of each rank of the group to `all`.
static Request startNumbers(Rank &rank, const RankGroup &group,
                            const std::vector<double> &own,
                            std::vector<double> &all) {
  all.resize(own.size() * group.ranks.size());
  // Bits travel as i32, so that nothing is rounded.
  Collective gather;
  gather.kind = Collective::Kind::AllGather;
  gather.type = ElementType::I32;
  gather.size = static_cast<int64_t>(group.ranks.size());
  gather.inner = 2 * static_cast<int64_t>(own.size());
  gather.reason = "numbers of all ranks";
  if (gather.inner == 0)
    return 0;
  return rank.host().start(Stream::Step, gather, group, own.data(), all.data());
}

std::vector<double> gatherNumbers(Rank &rank, const RankGroup &group,
                                  const std::vector<double> &own) {
  std::vector<double> all;
  rank.host().wait(startNumbers(rank, group, own, all));
  return all;
}

NumberGather::NumberGather(Rank &rank)
    : rank(rank), numbers(std::make_shared<Numbers>()) {
  rank.keep(numbers);
}

void NumberGather::start(std::vector<double> own) {
  numbers->own = std::move(own);
  request = startNumbers(rank, rank.everyone(), numbers->own, numbers->all);
  open = true;
}

std::vector<double> NumberGather::finish() {
  rank.host().wait(request);
  open = false;
  return numbers->all;
}

/// Calls body(begin, bytes) for pieces that every communicator takes.
template <typename F> static void forEachPiece(int64_t bytes, F body) {
  constexpr int64_t kPiece = 1 << 20;
  for (int64_t at = 0; at < bytes; at += kPiece)
    body(at, std::min(kPiece, bytes - at));
}

void sendBytes(Rank &rank, int to, const char *data, int64_t bytes) {
  forEachPiece(bytes, [&](int64_t at, int64_t count) {
    rank.host().wait(rank.host().send(Stream::Step, to, data + at, count));
  });
}

void receiveBytes(Rank &rank, int from, char *data, int64_t bytes) {
  forEachPiece(bytes, [&](int64_t at, int64_t count) {
    rank.host().wait(rank.host().receive(Stream::Step, from, data + at, count));
  });
}

std::vector<std::string> gatherTexts(Rank &rank, const std::string &own) {
  std::vector<double> sizes =
      gatherNumbers(rank, rank.everyone(), {static_cast<double>(own.size())});
  std::vector<std::string> texts;
  if (rank.number() != 0) {
    sendBytes(rank, 0, own.data(), static_cast<int64_t>(own.size()));
    return texts;
  }
  texts.push_back(own);
  for (size_t r = 1; r < sizes.size(); ++r) {
    std::string &text = texts.emplace_back(static_cast<size_t>(sizes[r]), ' ');
    receiveBytes(rank, static_cast<int>(r), text.data(),
                 static_cast<int64_t>(text.size()));
  }
  return texts;
}

std::string textOfRankZero(Rank &rank, const std::string &own) {
  std::vector<double> sizes =
      gatherNumbers(rank, rank.everyone(), {static_cast<double>(own.size())});
  if (rank.number() != 0) {
    std::string text(static_cast<size_t>(sizes[0]), ' ');
    receiveBytes(rank, 0, text.data(), static_cast<int64_t>(text.size()));
    return text;
  }
  for (size_t r = 1; r < sizes.size(); ++r)
    sendBytes(rank, static_cast<int>(r), own.data(),
              static_cast<int64_t>(own.size()));
  return own;
}

std::vector<bool> decideTogether(Rank &rank, const std::vector<bool> &own) {
  std::vector<double> all = gatherNumbers(
      rank, rank.everyone(), std::vector<double>(own.begin(), own.end()));
  std::vector<bool> decisions(own.size());
  for (size_t i = 0; i < all.size(); ++i)
    if (all[i] != 0.0)
      decisions[i % own.size()] = true;
  return decisions;
}

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
  std::vector<int> losses; // of each sum
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

BubbleGather::BubbleGather(Rank &rank, bool hasBarrier)
    : rank(rank), hasBarrier(hasBarrier), rows(std::make_shared<Rows>()) {
  rank.keep(rows);
}

void BubbleGather::start(std::vector<double> seconds) {
  Rows &all = *rows;
  open = true;
  all.assign(1, std::move(seconds));
  Communicator &host = rank.host();
  auto bytes = [](const std::vector<double> &numbers) {
    return static_cast<int64_t>(8 * numbers.size());
  };
  auto *first = reinterpret_cast<const char *>(all[0].data());
  if (rank.number() != 0)
    return forEachPiece(bytes(all[0]), [&](int64_t at, int64_t count) {
      requests.push_back(host.send(Stream::Step, 0, first + at, count));
    });
  const Program &program = rank.program();
  auto axis = static_cast<size_t>(stageAxis(program.mesh));
  for (int r = 1; r < static_cast<int>(rank.everyone().ranks.size()); ++r) {
    auto stage = static_cast<size_t>(coordinatesOf(program.mesh, r)[axis]);
    std::vector<double> &other =
        all.emplace_back(program.stages[stage].actions.size());
    auto *place = reinterpret_cast<char *>(other.data());
    forEachPiece(bytes(other), [&](int64_t at, int64_t count) {
      requests.push_back(host.receive(Stream::Step, r, place + at, count));
    });
  }
}

double BubbleGather::finish() {
  for (Request request : std::exchange(requests, {}))
    rank.host().wait(request);
  open = false;
  return rank.number() == 0 ? share() : 0.0;
}

double BubbleGather::share() const {
  const Rows &all = *rows;
  // One pipeline for each set of other coordinates: those of its first stage.
  const Program &program = rank.program();
  auto axis = static_cast<size_t>(stageAxis(program.mesh));
  double sum = 0.0;
  int64_t pipelines = 0;
  for (size_t first = 0; first < all.size(); ++first) {
    std::vector<int64_t> at =
        coordinatesOf(program.mesh, static_cast<int>(first));
    if (at[axis] != 0)
      continue;
    Rows stages;
    for (size_t s = 0; s < program.stages.size(); ++s) {
      at[axis] = static_cast<int64_t>(s);
      stages.push_back(all[static_cast<size_t>(rankOf(program.mesh, at))]);
    }
    sum += measuredBubble(program, stages, hasBarrier);
    ++pipelines;
  }
  return sum / static_cast<double>(pipelines);
}

} // namespace rota
