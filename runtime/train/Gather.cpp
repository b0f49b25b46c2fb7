// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/Gather.h"
#include "runtime/Error.h"
#include "runtime/program/Part.h"
#include "runtime/train/Executor.h"
#include "runtime/train/Observed.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fmt/format.h>

namespace rota {

std::vector<double> gatherNumbers(Rank &rank, const RankGroup &group,
                                  const std::vector<double> &own) {
  auto ranks = static_cast<int64_t>(group.ranks.size());
  std::vector<double> all(own.size() * group.ranks.size());
  // Bits travel as i32, so that nothing is rounded.
  Collective gather;
  gather.kind = Collective::Kind::AllGather;
  gather.type = ElementType::I32;
  gather.size = ranks;
  gather.inner = 2 * static_cast<int64_t>(own.size());
  gather.reason = "numbers of all ranks";
  if (gather.inner > 0)
    rank.host().run(Stream::Step, gather, group, own.data(), all.data());
  return all;
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
  double all = overWeight(sum);
  for (double term : terms)
    all += overWeight(term);
  return all + auxiliary;
}

std::vector<LossPart> Loss::parts(const Program &program) const {
  if (program.lossTerms.empty())
    return {};
  std::vector<LossPart> all = {{"main", overWeight(sum)}};
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

/// Gathers `own` of each rank of the loss, f32 [count], to `all`.
static void gatherOnDevice(Rank &rank, const void *own, int64_t count,
                           const char *reason, void *all) {
  Collective gather;
  gather.kind = Collective::Kind::AllGather;
  gather.type = ElementType::F32;
  gather.size = rank.places().lossRanks;
  gather.inner = count;
  gather.reason = reason;
  rank.communicator().run(Stream::Step, gather, rank.lossGroup(), own, all);
}

void startLossWeights(Rank &rank, int64_t round) {
  const RuntimeMemory &places = rank.places();
  int64_t own = rank.stage().loss;
  int64_t bytes = rank.program().microbatches * lossBytes(rank.program());
  gatherOnDevice(
      rank, own >= 0 ? rank.at(own) : rank.runtimeAt(places.noLosses),
      bytes / 4, "losses of all ranks",
      rank.runtimeAt(places.losses + round * places.lossRanks * bytes));
}

void startLoss(Rank &rank, int64_t round) {
  startLossWeights(rank, round);
  startTables(rank, round);
  const RuntimeMemory &places = rank.places();
  if (places.auxiliaryCount == 0)
    return;
  int64_t at = places.auxiliarySums;
  for (const auto &[layer, losses] : auxiliaryLayers(rank.program())) {
    int64_t bytes =
        4 * rank.program().microbatches * static_cast<int64_t>(losses.size());
    for (const AuxiliarySums &sums : rank.stage().auxiliarySums)
      if (sums.layer == layer)
        rank.device().copy(nullptr, rank.at(sums.offset), rank.runtimeAt(at),
                           bytes);
    at += bytes;
  }
  gatherOnDevice(
      rank, rank.runtimeAt(places.auxiliarySums), places.auxiliaryCount,
      "auxiliary losses of all ranks",
      rank.runtimeAt(places.auxiliary +
                     4 * round * places.lossRanks * places.auxiliaryCount));
}

/// The auxiliary losses of a step out of their sums, [rounds * ranks of the
/// loss, auxiliaryCount], so added that the bits do not depend on the schedule.
static double addAuxiliary(Rank &rank, const float *sums, int64_t rounds,
                           bool isSkipped) {
  const Program &program = rank.program();
  const RuntimeMemory &places = rank.places();
  std::vector<int> losses; // of each sum
  for (const auto &[layer, ofLayer] : auxiliaryLayers(program))
    for (int64_t m = 0; m < program.microbatches; ++m)
      losses.insert(losses.end(), ofLayer.begin(), ofLayer.end());
  std::vector<double> totals(program.auxiliaryLosses.size());
  for (int64_t i = 0; i < places.auxiliaryCount; ++i)
    for (int64_t r = 0; r < rounds * places.lossRanks; ++r)
      totals[losses[i]] += sums[r * places.auxiliaryCount + i];
  double auxiliary = 0.0;
  for (size_t l = 0; l < totals.size(); ++l) {
    const AuxiliaryLoss &loss = program.auxiliaryLosses[l];
    auxiliary +=
        loss.coefficient * totals[l] /
        (loss.weight * static_cast<double>(rounds * program.microbatches));
    if (!isSkipped && !std::isfinite(totals[l]))
      throw RunError(fmt::format("the auxiliary loss '{}' is not finite: {}",
                                 loss.name, totals[l]));
  }
  return auxiliary;
}

Loss gatherLoss(Rank &rank, int64_t rounds) {
  startLoss(rank, rounds - 1);
  const RuntimeMemory &places = rank.places();
  std::vector<char> result(static_cast<size_t>(places.resultBytes));
  rank.device().read(rank.runtimeAt(places.result), result.data(),
                     places.resultBytes);
  return finishLoss(rank, result, rounds);
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

Loss finishLoss(Rank &rank, std::span<const char> result, int64_t rounds,
                bool isSkipped) {
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
  for (size_t c = 0; c < static_cast<size_t>(rounds) * count; ++c)
    for (size_t r = 0; r < ranks; ++r) {
      size_t row = c / count * ranks + r;
      addLoss(program, &all[numbers * (row * count + c % count)],
              group.ranks[r], c / calls, isSkipped, total);
    }
  total.auxiliary =
      addAuxiliary(rank, numbersAt(places.auxiliary), rounds, isSkipped);
  if (total.weight < 0.0)
    throw RunError(fmt::format(
        "expected a weight of the loss that is not negative, got {}",
        total.weight));
  return total;
}

double gatherBubble(Rank &rank, const std::vector<double> &seconds) {
  std::string own(seconds.size() * sizeof(double), ' ');
  if (!own.empty())
    std::memcpy(own.data(), seconds.data(), own.size());
  std::vector<std::string> all = gatherTexts(rank, own);
  if (all.empty())
    return 0.0;
  // One pipeline for each set of other coordinates: those of its first stage.
  const Program &program = rank.program();
  size_t axis = static_cast<size_t>(stageAxis(program.mesh));
  double sum = 0.0;
  int64_t pipelines = 0;
  for (size_t first = 0; first < all.size(); ++first) {
    std::vector<int64_t> at =
        coordinatesOf(program.mesh, static_cast<int>(first));
    if (at[axis] != 0)
      continue;
    std::vector<std::vector<double>> rows;
    for (size_t s = 0; s < program.stages.size(); ++s) {
      at[axis] = static_cast<int64_t>(s);
      const std::string &text =
          all[static_cast<size_t>(rankOf(program.mesh, at))];
      rows.emplace_back(text.size() / sizeof(double));
      if (!text.empty())
        std::memcpy(rows.back().data(), text.data(), text.size());
    }
    sum += measuredBubble(program, rows);
    ++pipelines;
  }
  return sum / static_cast<double>(pipelines);
}

} // namespace rota
