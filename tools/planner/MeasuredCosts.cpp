// SPDX-License-Identifier: Apache-2.0
#include "tools/planner/MeasuredCosts.h"

#include "runtime/text/Text.h"
#include "tools/Median.h"
#include "tools/planner/LooseJson.h"

#include <algorithm>
#include <fmt/format.h>
#include <fstream>
#include <sstream>

namespace rota {
namespace {

using json::Json;
using pipe::parseAction;

/// The events of a trace, by what they tell.
class TraceCosts {
public:
  void add(const Json &event) {
    auto begin = json::number(event, "ts"), length = json::number(event, "dur"),
         lane = json::number(event, "tid"),
         run = json::number(json::member(event, "args"), "run");
    std::optional<Action> action = parseAction(json::text(event, "name"));
    if (json::text(event, "cat") != "training" || !begin || !length || !lane ||
        !run || *length < 0 || !action)
      return;
    Step &step = steps[*run];
    step.span.include(*begin, *begin + *length);
    if (isCompute(action->kind))
      step.lanes[*lane].include(*begin, *begin + *length);
    step.lengths[{action->chunk, action->kind}].push_back(1e-6 * *length);
  }

  /// Nothing without a step.
  std::optional<MeasuredCosts> costs() {
    if (steps.empty())
      return std::nullopt;
    if (steps.size() > 1)
      steps.erase(steps.begin());
    std::map<std::pair<int, ActionKind>, std::vector<double>> lengths;
    std::vector<double> ends, messages;
    const Step *before = nullptr;
    for (const auto &[run, step] : steps) {
      if (before)
        ends.push_back(1e-6 * gapBetween(*before, step));
      before = &step;
      for (const auto &[key, values] : step.lengths) {
        std::vector<double> &all =
            isMessage(key.second) ? messages : lengths[key];
        if (!isSend(key.second)) // a message counts where it arrives
          all.insert(all.end(), values.begin(), values.end());
      }
    }
    MeasuredCosts result;
    for (const auto &[key, values] : lengths)
      (isCompute(key.second) ? result.compute : result.transfers)[key] =
          median(values);
    result.send = messages.empty() ? 0 : median(messages);
    result.stepEnd = ends.empty() ? 0 : median(ends);
    return result;
  }

private:
  struct Span {
    double begin = 1e300, end = -1e300; // microseconds
    void include(double from, double to) {
      begin = std::min(begin, from);
      end = std::max(end, to);
    }
  };
  struct Step {
    Span span;
    std::map<double, Span> lanes; // compute actions, a lane for each rank
    std::map<std::pair<int, ActionKind>, std::vector<double>> lengths;
  };

  /// Microseconds between two steps: of all ranks, or, without a step
  /// barrier, of the rank that waits least for others.
  static double gapBetween(const Step &before, const Step &step) {
    double gap = step.span.begin - before.span.end;
    if (gap > 0)
      return gap;
    double least = 1e300;
    for (const auto &[lane, span] : step.lanes)
      if (auto own = before.lanes.find(lane); own != before.lanes.end())
        least = std::min(least, span.begin - own->second.end);
    return least < 1e300 ? std::max(0.0, least) : 0;
  }

  std::map<double, Step> steps;
};

} // namespace

std::optional<MeasuredCosts> readMeasuredCosts(const std::string &path,
                                               std::string &error) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    error = fmt::format("cannot read '{}'", path);
    return std::nullopt;
  }
  std::stringstream text;
  text << file.rdbuf();
  Json trace = json::parseJson(text.view());
  TraceCosts events;
  const Json &list = json::member(trace, "traceEvents");
  if (list.is_array())
    for (const Json &event : list)
      events.add(event);
  std::optional<MeasuredCosts> costs = events.costs();
  if (!costs)
    error = fmt::format("expected a trace of training steps, as `rota train "
                        "--trace` writes it, got '{}'",
                        path);
  return costs;
}

std::optional<pipe::CostTable> costTable(const MeasuredCosts &measured,
                                         const pipe::Timeline &timeline,
                                         std::string &error) {
  auto isMeasured = [&](int chunk, ActionKind kind) {
    return measured.compute.contains({chunk, kind});
  };
  auto secondsOf = [&](int chunk, ActionKind kind) {
    return isMeasured(chunk, kind) ? measured.compute.at({chunk, kind}) : 0;
  };
  // Of a chunk without layers, F of the loss and W of the embedding have no
  // work and no events: they take no time.
  auto find = [&](int chunk, ActionKind kind) -> std::optional<double> {
    if (kind == ActionKind::Forward || isMeasured(chunk, kind))
      return secondsOf(chunk, kind);
    if (!isMeasured(chunk, ActionKind::BackwardInput))
      return std::nullopt;
    double weights = secondsOf(chunk, ActionKind::BackwardWeight);
    return kind == ActionKind::BackwardWeight
               ? weights
               : secondsOf(chunk, ActionKind::BackwardInput) + weights;
  };
  int chunks = timeline.shape.chunks();
  int seen = 0;
  for (const auto &[key, seconds] : measured.compute)
    seen = std::max(seen, key.first + 1);
  if (seen != chunks) {
    error = fmt::format("expected a run with {}, got {}",
                        counted(chunks, "chunk"), seen);
    return std::nullopt;
  }
  pipe::CostTable table;
  table.chunks.assign(chunks, {});
  table.transfers.assign(chunks, {});
  table.send = measured.send;
  for (const std::vector<Action> &row : timeline.ranks)
    for (const Action &action : row) {
      if (!isCompute(action.kind))
        continue;
      std::optional<double> seconds = find(action.chunk, action.kind);
      if (!seconds) {
        error = fmt::format("expected a run with action {}, got none; a run "
                            "with --split-backward has I and W",
                            toString(action));
        return std::nullopt;
      }
      table.chunks[action.chunk][static_cast<int>(action.kind)] = *seconds;
    }
  for (const auto &[key, seconds] : measured.transfers)
    if (key.first < chunks)
      table.transfers[key.first][transferStream(key.second)] = seconds;
  return table;
}

std::optional<MeasuredStep> simulateMeasured(const std::string &path,
                                             const pipe::Timeline &timeline,
                                             int cores, std::string &error) {
  std::optional<MeasuredCosts> measured = readMeasuredCosts(path, error);
  if (!measured)
    return std::nullopt;
  std::optional<pipe::CostTable> costs = costTable(*measured, timeline, error);
  if (!costs)
    return std::nullopt;
  costs->cores = cores;
  std::optional<pipe::Simulation> simulation = pipe::simulate(timeline, *costs);
  auto steady = pipe::steadyStep(timeline, *costs, measured->stepEnd);
  if (!simulation || !steady) {
    error = "the timeline does not complete";
    return std::nullopt;
  }
  return MeasuredStep{std::move(*simulation), *steady, measured->stepEnd};
}

} // namespace rota
