// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/Gather.h"
#include "runtime/Error.h"
#include "runtime/program/Part.h"
#include "runtime/train/Executor.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fmt/format.h>
#include <map>

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

bool decideOnRankZero(Rank &rank, bool own) {
  return gatherNumbers(rank, rank.everyone(), {own ? 1.0 : 0.0})[0] != 0.0;
}

void startLoss(Rank &rank) {
  const RuntimeMemory &places = rank.places();
  Collective gather;
  gather.kind = Collective::Kind::AllGather;
  gather.type = ElementType::F32;
  gather.size = places.lossRanks;
  gather.inner = 2 * rank.program().microbatches;
  gather.reason = "losses of all ranks";
  int64_t own = rank.stage().loss;
  rank.communicator().run(Stream::Step, gather, rank.lossGroup(),
                          own >= 0 ? rank.at(own)
                                   : rank.runtimeAt(places.noLosses),
                          rank.runtimeAt(places.losses));
}

static std::vector<float> readLosses(Rank &rank) {
  startLoss(rank);
  const RuntimeMemory &places = rank.places();
  std::vector<float> losses(
      static_cast<size_t>(2 * places.lossRanks * rank.program().microbatches));
  rank.device().read(rank.runtimeAt(places.losses), losses.data(),
                     static_cast<int64_t>(4 * losses.size()));
  return losses;
}

double gatherLossWeight(Rank &rank) {
  auto count = static_cast<size_t>(rank.program().microbatches);
  std::vector<float> all = readLosses(rank);
  double weight = 0.0;
  for (size_t m = 0; m < count; ++m)
    for (size_t r = 0; r < rank.lossGroup().ranks.size(); ++r)
      weight += all[2 * (r * count + m) + 1];
  return weight;
}

/// By the number of a layer that has auxiliary losses, its losses.
static std::map<int64_t, std::vector<int>> auxiliaryLayers(const Program &p) {
  std::map<int64_t, std::vector<int>> layers;
  for (const Stage &stage : p.stages)
    for (const AuxiliarySums &sums : stage.auxiliarySums)
      layers[sums.layer] = sums.losses;
  return layers;
}

/// The auxiliary losses of a step, summed by microbatch, layer and rank, so
/// that the bits do not depend on the schedule.
static double gatherAuxiliary(Rank &rank) {
  const Program &program = rank.program();
  auto count = static_cast<size_t>(program.microbatches);
  std::vector<double> own;
  std::vector<int> losses; // of each number of `own`
  for (const auto &[layer, ofLayer] : auxiliaryLayers(program)) {
    size_t begin = own.size();
    own.resize(begin + count * ofLayer.size());
    for (size_t m = 0; m < count; ++m)
      losses.insert(losses.end(), ofLayer.begin(), ofLayer.end());
    for (const AuxiliarySums &sums : rank.stage().auxiliarySums)
      if (sums.layer == layer) {
        auto count = static_cast<int64_t>(own.size() - begin);
        std::vector<float> values = rank.read<float>(sums.offset, count);
        std::copy(values.begin(), values.end(), own.end() - count);
      }
  }
  std::vector<double> all = gatherNumbers(rank, rank.lossGroup(), own);
  std::vector<double> totals(program.auxiliaryLosses.size());
  for (size_t i = 0; i < own.size(); ++i)
    for (size_t r = 0; r < rank.lossGroup().ranks.size(); ++r)
      totals[losses[i]] += all[r * own.size() + i];
  double auxiliary = 0.0;
  for (size_t l = 0; l < totals.size(); ++l) {
    const AuxiliaryLoss &loss = program.auxiliaryLosses[l];
    auxiliary += loss.coefficient * totals[l] /
                 (loss.weight * static_cast<double>(count));
    if (!std::isfinite(totals[l]))
      throw RunError(fmt::format("the auxiliary loss '{}' is not finite: {}",
                                 loss.name, totals[l]));
  }
  return auxiliary;
}

Loss gatherLoss(Rank &rank) { return finishLoss(rank, readLosses(rank)); }

Loss finishLoss(Rank &rank, std::span<const float> all) {
  auto count = static_cast<size_t>(rank.program().microbatches);
  const RankGroup &group = rank.lossGroup();
  Loss total;
  for (size_t m = 0; m < count; ++m)
    for (size_t r = 0; r < group.ranks.size(); ++r) {
      const float *pair = &all[2 * (r * count + m)];
      if (!std::isfinite(pair[0]) || !std::isfinite(pair[1]))
        throw RunError(fmt::format(
            "rank {}: the loss of microbatch {} is not finite (sum {}, weight "
            "{})",
            group.ranks[r], m, pair[0], pair[1]));
      total.sum += pair[0];
      total.weight += pair[1];
    }
  total.auxiliary = gatherAuxiliary(rank);
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
