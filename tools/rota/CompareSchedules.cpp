// SPDX-License-Identifier: Apache-2.0
//
// See CompareSchedules.h.
#include "tools/rota/CompareSchedules.h"

#include "passes/pipeline/drawing/Comparison.h"
#include "passes/pipeline/drawing/Table.h"
#include "passes/pipeline/schedules/Schedules.h"
#include "tools/rota/RequestedTimeline.h"

namespace rota {
namespace {

using namespace pipe;

/// `options` for the schedule or file called `name`.
RunOptions optionsOf(const RunOptions &options, const std::string &name) {
  RunOptions own = options;
  own.schedule = name;
  if (name.ends_with(".csv")) { // the file says both
    own.given.erase("chunks");
    own.given.erase("placement");
    return own;
  }
  Shape shape;
  shape.stages = static_cast<int>(options.stages);
  if (options.given.contains("chunks"))
    shape.repeats = static_cast<int>(options.repeats);
  shape.placement = options.placement;
  shape = demandedShape(name, shape);
  own.repeats = shape.repeats;
  own.placement = shape.placement;
  own.given.insert("chunks");
  return own;
}

std::vector<ComparedSchedule> compareFor(const RunOptions &options,
                                         const CostTable &costs) {
  std::vector<ComparedSchedule> rows;
  for (const std::string &name : options.compare) {
    std::vector<std::string> errors;
    std::optional<Timeline> timeline =
        requestedTimeline(optionsOf(options, name), errors);
    if (timeline) {
      rows.push_back(compared(name, *timeline, costs));
      continue;
    }
    ComparedSchedule &row = rows.emplace_back();
    row.name = name;
    row.error = errors.front();
    row.shape.stages = static_cast<int>(options.stages);
    row.shape.microbatches = static_cast<int>(options.microbatches);
  }
  return rows;
}

/// "ranks 8, microbatches 32; all layers of a rank: F 1, B 2, I 1, W 1, message
/// 0".
std::string title(const RunOptions &options, const CostTable &costs) {
  std::string text = "ranks " + std::to_string(options.stages) +
                     ", microbatches " + std::to_string(options.microbatches) +
                     "; all layers of a rank: ";
  for (auto [name, cost] : {std::pair("F ", costs.forward),
                            {", B ", costs.backward},
                            {", I ", costs.backwardInput},
                            {", W ", costs.backwardWeight},
                            {", message ", costs.send}})
    text += name + pipe::numberCell(cost);
  return text + "\n";
}

} // namespace

std::string compareSchedules(const RunOptions &options, bool &exists) {
  CostTable costs = options.costs;
  if (!options.given.contains("cost-backward"))
    costs.backward = costs.backwardInput + costs.backwardWeight;
  std::vector<int64_t> counts = {options.microbatches};
  if (options.sweep)
    counts = {options.stages, 2 * options.stages, 4 * options.stages,
              8 * options.stages};
  exists = false;
  std::string text;
  std::vector<ComparedSchedule> all;
  RunOptions own = options;
  own.costs = costs;
  for (int64_t count : counts) {
    own.microbatches = count;
    own.given.insert("microbatches");
    std::vector<ComparedSchedule> rows = compareFor(own, costs);
    text +=
        (text.empty() ? "" : "\n") + title(own, costs) + drawComparison(rows);
    for (const ComparedSchedule &row : rows)
      exists |= row.error.empty();
    all.insert(all.end(), rows.begin(), rows.end());
  }
  bool isJson = options.json || options.format == TimelineFormat::JSON;
  return isJson ? drawComparisonJson(all) : text;
}

} // namespace rota
