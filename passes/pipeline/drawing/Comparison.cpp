// SPDX-License-Identifier: Apache-2.0
//
// See Comparison.h.
#include "passes/pipeline/drawing/Comparison.h"

#include "passes/pipeline/drawing/Table.h"
#include "passes/pipeline/schedules/Schedules.h"
#include "runtime/program/JsonText.h"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace rota::pipe {
namespace {

int64_t countMessages(const Shape &shape) {
  int64_t messages = 0;
  for (int chunk = 0; chunk < shape.chunks(); ++chunk)
    for (int m = 0; m < shape.microbatches; ++m)
      messages += shape.sendsForward(chunk, m) + shape.sendsBackward(chunk, m);
  return messages;
}

} // namespace

CostTable costsOfChunks(const Shape &shape, const CostTable &costs) {
  CostTable result = costs;
  auto scaled = [&](double cost, int chunk) {
    return shape.isUnpipelined(chunk) ? cost : cost / shape.repeats;
  };
  for (int chunk = 0; chunk < shape.chunks(); ++chunk) {
    result.chunks.push_back({});
    result.transfers.push_back({});
    for (int kind = 0; kind < kActionKindCount; ++kind) {
      Action action{chunk, ActionKind(kind), 0};
      double cost = scaled(costs.of(action), chunk);
      if (isCompute(action.kind))
        result.chunks.back()[kind] = cost;
      else if (isTransfer(action.kind))
        result.transfers.back()[transferStream(action.kind)] = cost;
    }
  }
  return result;
}

ComparedSchedule compared(const std::string &name, const Timeline &timeline,
                          const CostTable &costs) {
  const Shape &shape = timeline.shape;
  CostTable chunkCosts = costsOfChunks(shape, costs);
  std::optional<Simulation> simulation = simulate(timeline, chunkCosts);
  ComparedSchedule row;
  row.name = name;
  row.shape = shape;
  row.makespan = simulation->makespan;
  row.bubble = simulation->bubble;
  row.idleShare = simulation->idleShare;
  row.steady = *steadyStep(timeline, chunkCosts);
  for (const RankUsage &rank : simulation->ranks)
    row.peakActivations =
        std::max(row.peakActivations, wholeActivations(rank.peakLive, shape));
  row.messages = countMessages(shape);
  return row;
}

std::string drawComparison(const std::vector<ComparedSchedule> &schedules) {
  std::vector<std::vector<std::string>> table = {
      {"schedule", "chunks", "placement", "makespan", "bubble", "idle",
       "steady step", "steady bubble", "activations", "of 1f1b", "messages"}};
  std::string errors;
  for (const ComparedSchedule &row : schedules) {
    if (!row.error.empty()) {
      table.push_back(
          {row.name, "-", "-", "-", "-", "-", "-", "-", "-", "-", "-"});
      errors += row.name + ": " + row.error + "\n";
      continue;
    }
    table.push_back(
        {row.name, std::to_string(row.shape.repeats),
         nameOf(row.shape.placement), numberCell(row.makespan),
         percentCell(row.bubble), percentCell(row.idleShare),
         numberCell(row.steady.time), percentCell(row.steady.bubble),
         numberCell(row.peakActivations),
         percentCell(shareOfOneFOneB(row.peakActivations, row.shape)),
         std::to_string(row.messages)});
  }
  return alignedTable(table) + errors;
}

std::string drawComparisonJson(const std::vector<ComparedSchedule> &schedules) {
  using Json = nlohmann::ordered_json;
  Json rows = Json::array();
  for (const ComparedSchedule &row : schedules) {
    Json json = {{"schedule", row.name},
                 {"ranks", row.shape.stages},
                 {"microbatches", row.shape.microbatches}};
    if (!row.error.empty())
      json["error"] = row.error;
    else
      json.update(Json{
          {"chunks", row.shape.repeats},
          {"placement", nameOf(row.shape.placement)},
          {"makespan", row.makespan},
          {"bubble", row.bubble},
          {"idle_share", row.idleShare},
          {"steady_step", row.steady.time},
          {"steady_bubble", row.steady.bubble},
          {"peak_activations", row.peakActivations},
          {"share_of_1f1b", shareOfOneFOneB(row.peakActivations, row.shape)},
          {"messages", row.messages}});
    rows.push_back(std::move(json));
  }
  return jsonText(rows, 2) + "\n";
}

} // namespace rota::pipe
