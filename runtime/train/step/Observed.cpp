// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/step/Observed.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace rota {

void startTables(Rank &rank, int64_t accumulationStep) {
  const RuntimeMemory &places = rank.places();
  int64_t at = places.observed + accumulationStep * places.observedBytes;
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
  int64_t offset; // offset of the table in those of a microbatch of the layer
};
} // namespace

/// In the order of observedLayers.
static std::vector<LayerCounts> layerCounts(const Program &program) {
  std::vector<LayerCounts> layers;
  size_t first = 0;
  for (const auto &[layer, observations] : observedLayers(program)) {
    int64_t offset = 0;
    for (int observation : observations) {
      const Observation &form = program.observations[observation];
      layers.push_back({&form, first, layer, offset});
      first += static_cast<size_t>(form.columns);
      offset += form.bytes();
    }
  }
  return layers;
}

/// Sums of the columns of all layers over rows, microbatches and accumulation
/// steps [0, accumulationSteps) of this rank's tables at
/// RuntimeMemory::observed.
static std::vector<int32_t> sumTables(Rank &rank, const char *tables,
                                      int64_t accumulationSteps) {
  const Program &program = rank.program();
  std::vector<int32_t> sums;
  int64_t layerOffset = 0; // offset of the layer's tables
  for (const auto &[layer, observations] : observedLayers(program)) {
    int64_t stride = tableBytes(program, observations), inTables = 0;
    for (int observation : observations) {
      const Observation &form = program.observations[observation];
      size_t first = sums.size();
      sums.resize(first + static_cast<size_t>(form.columns));
      for (int64_t m = 0; m < accumulationSteps * program.microbatches; ++m) {
        int64_t accumulationStep = m / program.microbatches;
        const auto *table = reinterpret_cast<const int32_t *>(
            tables + accumulationStep * rank.places().observedBytes +
            layerOffset + m % program.microbatches * stride + inTables);
        for (int64_t i = 0; i < form.rows * form.columns; ++i)
          sums[first + static_cast<size_t>(i % form.columns)] += table[i];
      }
      inTables += form.bytes();
    }
    layerOffset += program.microbatches * stride;
  }
  return sums;
}

/// Starts adding the `own` of all ranks to `all`.
static Request startSum(Rank &rank, const std::vector<int32_t> &own,
                        std::vector<int32_t> &all) {
  all.resize(own.size());
  Collective add;
  add.kind = Collective::Kind::AllReduce;
  add.type = ElementType::I32;
  add.size = static_cast<int64_t>(all.size());
  add.reason = "observations of all ranks";
  return rank.host().start(Stream::Step, add, rank.everyone(), own.data(),
                           all.data());
}

/// Ranks of a stage that count the same part of a sequence.
static int64_t copiesOf(Rank &rank, const Observation &form) {
  const Program &program = rank.program();
  auto ranks = static_cast<int64_t>(rank.everyone().ranks.size() /
                                    program.stages.size());
  return ranks * form.rows / (program.input.shape[0] * form.parts);
}

/// Writes a mean after that table of each microbatch, where this rank has the
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

void writeMeans(Rank &rank, int64_t accumulationSteps) {
  const Program &program = rank.program();
  const RuntimeMemory &places = rank.places();
  std::vector<char> tables(
      static_cast<size_t>(accumulationSteps * places.observedBytes));
  rank.device().read(rank.runtimeAt(places.observed), tables.data(),
                     accumulationSteps * places.observedBytes);
  std::vector<int32_t> own = sumTables(rank, tables.data(), accumulationSteps),
                       all;
  rank.host().wait(startSum(rank, own, all));
  for (const LayerCounts &columns : layerCounts(program)) {
    if (!columns.form->isAveraged)
      continue;
    int64_t parts = copiesOf(rank, *columns.form) * accumulationSteps *
                    program.microbatches;
    std::vector<float> mean;
    for (int64_t x = 0; x < columns.form->columns; ++x)
      mean.push_back(static_cast<float>(
          static_cast<double>(all[columns.first + static_cast<size_t>(x)]) /
          static_cast<double>(parts)));
    writeMean(rank, columns, mean);
  }
}

TableSums::TableSums(Rank &rank)
    : rank(rank), columns(std::make_shared<Columns>()) {
  rank.keep(columns);
}

void TableSums::start(std::span<const char> result) {
  open = true;
  const RuntimeMemory &places = rank.places();
  if (rank.program().observations.empty())
    return;
  auto &[own, all] = *columns;
  own = sumTables(rank, result.data() + (places.observed - places.result),
                  rank.program().accumulationSteps);
  request = startSum(rank, own, all);
}

std::vector<ObservedStep> TableSums::finish() {
  const Program &program = rank.program();
  rank.host().wait(std::exchange(request, 0));
  open = false;
  const std::vector<int32_t> &all = columns->all;
  std::vector<ObservedStep> steps;
  std::vector<int64_t> layers, expected; // by name
  for (const LayerCounts &layer : layerCounts(program)) {
    const Observation &form = *layer.form;
    auto step = std::ranges::find(steps, form.name, &ObservedStep::name);
    auto number = static_cast<size_t>(step - steps.begin());
    if (step == steps.end()) {
      steps.emplace_back().name = form.name;
      step = steps.end() - 1;
      layers.push_back(0);
      expected.push_back(0);
    }
    std::span<const int32_t> counts(all.data() + layer.first,
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
    int64_t whole = program.stepSequences() * form.parts * form.each;
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
