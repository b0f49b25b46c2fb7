// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/Observed.h"

#include <algorithm>
#include <numeric>

namespace rota {

void startTables(Rank &rank, int64_t round) {
  const RuntimeMemory &places = rank.places();
  int64_t at = places.observed + round * places.observedBytes;
  for (const auto &[layer, observations] : observedLayers(rank.program())) {
    int64_t bytes =
        rank.program().microbatches * tableBytes(rank.program(), observations);
    for (const ObservedTables &tables : rank.stage().observedTables)
      if (tables.layer == layer)
        rank.device().copy(nullptr, rank.at(tables.offset), rank.runtimeAt(at),
                           bytes);
    at += bytes;
  }
}

namespace {
/// The columns of one layer and observation, in the sums of all.
struct LayerCounts {
  const Observation *form;
  size_t first;
  int64_t layer;
  int64_t offset; // of the table, in those of a microbatch of the layer
};

/// The columns of all layers of this rank, and where they are.
struct OwnSums {
  std::vector<LayerCounts> columns;
  std::vector<int32_t> values;
};
} // namespace

/// Adds rows, microbatches and rounds [0, rounds) up. `tables`:
/// RuntimeMemory::observed.
static OwnSums sumTables(Rank &rank, const char *tables, int64_t rounds) {
  const Program &program = rank.program();
  OwnSums sums;
  int64_t inRound = 0; // of the layer's tables
  for (const auto &[layer, observations] : observedLayers(program)) {
    int64_t stride = tableBytes(program, observations), inTables = 0;
    for (int observation : observations) {
      const Observation &form = program.observations[observation];
      size_t first = sums.values.size();
      sums.columns.push_back({&form, first, layer, inTables});
      sums.values.resize(first + static_cast<size_t>(form.columns));
      for (int64_t m = 0; m < rounds * program.microbatches; ++m) {
        int64_t round = m / program.microbatches;
        const auto *table = reinterpret_cast<const int32_t *>(
            tables + round * rank.places().observedBytes + inRound +
            m % program.microbatches * stride + inTables);
        for (int64_t i = 0; i < form.rows * form.columns; ++i)
          sums.values[first + static_cast<size_t>(i % form.columns)] +=
              table[i];
      }
      inTables += form.bytes();
    }
    inRound += program.microbatches * stride;
  }
  return sums;
}

/// The sums of this rank and of all others.
static std::vector<int32_t> addRanks(Rank &rank, const OwnSums &sums) {
  std::vector<int32_t> all(sums.values.size());
  Collective add;
  add.kind = Collective::Kind::AllReduce;
  add.type = ElementType::I32;
  add.size = static_cast<int64_t>(all.size());
  add.reason = "observations of all ranks";
  rank.host().run(Stream::Step, add, rank.everyone(), sums.values.data(),
                  all.data());
  return all;
}

/// Ranks of a stage that count the same sequence.
static int64_t copiesOf(Rank &rank, const Observation &form) {
  const Program &program = rank.program();
  auto ranks = static_cast<int64_t>(rank.everyone().ranks.size() /
                                    program.stages.size());
  return ranks * form.rows / program.input.shape[0];
}

/// Writes a mean behind that table of each microbatch, where this rank has the
/// layer.
static void writeMean(Rank &rank, const LayerCounts &columns,
                      const std::vector<float> &mean) {
  const Program &program = rank.program();
  for (const ObservedTables &tables : rank.stage().observedTables) {
    if (tables.layer != columns.layer)
      continue;
    int64_t place = tables.offset + columns.offset + columns.form->meanOffset();
    int64_t stride = tableBytes(program, tables.observations);
    for (int64_t m = 0; m < program.microbatches; ++m)
      rank.write(mean, place + m * stride);
  }
}

void writeMeans(Rank &rank, int64_t rounds) {
  const Program &program = rank.program();
  const RuntimeMemory &places = rank.places();
  std::vector<char> tables(static_cast<size_t>(rounds * places.observedBytes));
  rank.device().read(rank.runtimeAt(places.observed), tables.data(),
                     rounds * places.observedBytes);
  OwnSums sums = sumTables(rank, tables.data(), rounds);
  std::vector<int32_t> all = addRanks(rank, sums);
  for (const LayerCounts &columns : sums.columns) {
    if (!columns.form->isAveraged)
      continue;
    int64_t parts =
        copiesOf(rank, *columns.form) * rounds * program.microbatches;
    std::vector<float> mean;
    for (int64_t x = 0; x < columns.form->columns; ++x)
      mean.push_back(static_cast<float>(
          static_cast<double>(all[columns.first + static_cast<size_t>(x)]) /
          static_cast<double>(parts)));
    writeMean(rank, columns, mean);
  }
}

std::vector<ObservedStep> readTables(Rank &rank, std::span<const char> result) {
  const Program &program = rank.program();
  const RuntimeMemory &places = rank.places();
  if (program.observations.empty())
    return {};
  OwnSums sums = sumTables(
      rank, result.data() + (places.observed - places.result), program.rounds);
  std::vector<int32_t> all = addRanks(rank, sums);
  std::vector<ObservedStep> steps;
  std::vector<int64_t> layers, expected; // of each name
  for (const LayerCounts &columns : sums.columns) {
    const Observation &form = *columns.form;
    auto step = std::ranges::find(steps, form.name, &ObservedStep::name);
    auto number = static_cast<size_t>(step - steps.begin());
    if (step == steps.end()) {
      steps.emplace_back().name = form.name;
      step = steps.end() - 1;
      layers.push_back(0);
      expected.push_back(0);
    }
    std::span<const int32_t> counts(all.data() + columns.first,
                                    static_cast<size_t>(form.columns));
    int64_t sum = std::accumulate(counts.begin(), counts.end(), int64_t(0));
    double largest = *std::ranges::max_element(counts);
    double load = sum == 0 ? 0.0
                           : largest * static_cast<double>(form.columns) /
                                 static_cast<double>(sum);
    step->worst = std::max(step->worst, load);
    step->mean += load;
    ++layers[number];
    if (form.each == 0)
      continue;
    if (!step->dropped)
      step->dropped.emplace();
    int64_t whole = program.stepSequences() * form.each;
    step->dropped->count += whole - sum / copiesOf(rank, form);
    expected[number] += whole;
  }
  for (size_t i = 0; i < steps.size(); ++i) {
    steps[i].mean /= static_cast<double>(layers[i]);
    if (steps[i].dropped)
      steps[i].dropped->share = static_cast<double>(steps[i].dropped->count) /
                                static_cast<double>(expected[i]);
  }
  return steps;
}

} // namespace rota
