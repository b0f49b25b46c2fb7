// SPDX-License-Identifier: Apache-2.0
#include "tools/rota/plan/PlanReport.h"

#include "lowering/report/AxisTransfers.h"
#include "lowering/report/Divisions.h"
#include "lowering/report/Launches.h"
#include "passes/pipeline/drawing/Drawing.h"
#include "runtime/files/Terminal.h"
#include "runtime/metrics/RunDescription.h"
#include "runtime/program/DeviceTraits.h"
#include "runtime/program/JsonText.h"
#include "runtime/program/RuntimeMemory.h"
#include "runtime/text/Text.h"
#include "runtime/train/step/StepBarrier.h"
#include "tools/planner/SimulatedPlan.h"
#include "tools/planner/StateTable.h"
#include "tools/rota/plan/PlanSummary.h"

#include <cstdlib>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

using nlohmann::ordered_json;

namespace rota {
namespace {

ordered_json transfersJson(const std::vector<TransferReport> &reports) {
  ordered_json list = ordered_json::array();
  for (const TransferReport &report : reports)
    list.push_back({{"transfer", report.facts.kind},
                    {"tensor", report.facts.tensor},
                    {"axes", report.facts.axes},
                    {"ranks", report.facts.ranks},
                    {"why", report.facts.reason},
                    {"stage", report.stage},
                    {"times", report.times},
                    {"bytes", report.bytes},
                    {"seconds", report.seconds},
                    {"exposed_seconds", report.exposed},
                    {"waiter", report.waiter}});
  return list;
}

ordered_json axisTransfersJson(const std::vector<TransferReport> &reports) {
  ordered_json list = ordered_json::array();
  for (const AxisTransfers &sum : sumOverAxes(reports))
    list.push_back({{"axes", sum.axes},
                    {"bytes", sum.bytes},
                    {"seconds", sum.seconds},
                    {"exposed_seconds", sum.exposed},
                    {"hidden", sum.hiddenShare()}});
  return list;
}

/// Null for unpipelined layers, which all stages have.
ordered_json stageJson(const ChunkNeed &need) {
  return need.stage < 0 ? ordered_json() : ordered_json(need.stage);
}

ordered_json axesJson(const DivisionReport &report) {
  ordered_json axes = ordered_json::object();
  for (const AxisDivision &axis : report.axes) {
    ordered_json divided = {{"work", axis.work}};
    if (axis.activations)
      divided["activations"] = *axis.activations;
    divided["parameters"] = axis.parameters;
    divided["optimizer"] = axis.optimizer;
    axes[axis.axis] = {{"ranks", axis.ranks}, {"divided", divided}};
  }
  return axes;
}

ordered_json policiesJson(const std::vector<PolicyPlan> &rows) {
  ordered_json list = ordered_json::array();
  for (const PolicyPlan &row : rows) {
    list.push_back({{"policy", row.policy}, {"chosen", row.chosen}});
    ordered_json &entry = list.back();
    if (!row.error.empty()) {
      entry["error"] = row.error;
      continue;
    }
    entry["peak_bytes"] = row.peakBytes;
    entry["activation_bytes"] = row.activationBytes;
    entry["host_bytes"] = row.hostBytes;
    entry["recomputed"] = row.recomputed;
    entry["step_seconds"] = row.time.timeline;
    if (row.steadyStep)
      entry["steady_step_seconds"] = *row.steadyStep;
    entry["stages"] = ordered_json::array();
    for (const StageNeed &need : row.stages)
      entry["stages"].push_back(
          {{"bytes", need.bytes}, {"seconds", need.seconds}});
    entry["chunks"] = ordered_json::array();
    for (const ChunkNeed &need : row.chunks)
      entry["chunks"].push_back({{"stage", stageJson(need)},
                                 {"bytes", need.bytes},
                                 {"seconds", need.seconds}});
    entry["kept"] = row.residuals.kept;
    entry["offloaded"] = row.residuals.offloaded;
    entry["others"] = row.residuals.unnamed;
  }
  return list;
}

/// The choice of `--remat auto` and its costs.
ordered_json choiceJson(const RematChoice &choice) {
  ordered_json stages = ordered_json::array(), chunks = ordered_json::array();
  for (size_t stage = 0; stage < choice.plan.stages.size(); ++stage) {
    const StageNeed &need = choice.plan.stages[stage];
    stages.push_back({{"bytes", need.bytes},
                      {"seconds", need.seconds},
                      {"least_seconds", choice.fastest[stage].seconds}});
  }
  for (size_t chunk = 0; chunk < choice.policies.size(); ++chunk) {
    const ChunkNeed &need = choice.plan.chunks[chunk];
    chunks.push_back({{"stage", stageJson(need)},
                      {"policy", choice.policies[chunk]},
                      {"bytes", need.bytes},
                      {"seconds", need.seconds},
                      {"least_seconds", choice.fastestChunks[chunk]}});
  }
  return {{"policy", choice.plan.policy},
          {"step_seconds", choice.plan.time.timeline},
          {"least_step_seconds", choice.leastStep},
          {"stages", stages},
          {"chunks", chunks}};
}

/// A number of seconds with nine digits, which resolves every action.
double shortSeconds(double seconds) {
  return std::strtod(fmt::format("{:.9g}", seconds).c_str(), nullptr);
}

/// The actions of a stage, a line for each.
std::string actionLines(const std::vector<TimedAction> &actions) {
  std::vector<std::string> lines;
  for (const TimedAction &timed : actions) {
    const Action &action = timed.action;
    ordered_json row = {{"action", toString(action)},
                        {"kind", toString(action.kind)},
                        {"chunk", action.chunk}};
    if (hasMicrobatch(action.kind))
      row["microbatch"] = action.microbatch;
    row["stream"] = timed.stream;
    row["begin"] = shortSeconds(timed.span.start);
    row["end"] = shortSeconds(timed.span.end);
    lines.push_back("        " + jsonText(row));
  }
  return fmt::format("{}", fmt::join(lines, ",\n"));
}

/// The simulated step: a row for each stage, which all its ranks run, with the
/// number of the first of them.
std::string timelineText(const Plan &plan) {
  std::optional<SimulatedPlan> simulated = simulatePlan(plan);
  if (!simulated)
    return "[]";
  int64_t stride = 1; // from a stage's first rank to that of the next
  for (auto axis = plan.program.mesh.rbegin(); axis->name != "stage"; ++axis)
    stride *= axis->size;
  std::vector<std::string> rows;
  for (size_t stage = 0; stage < simulated->stages.size(); ++stage)
    rows.push_back(fmt::format(
        "    {{\n      \"stage\": {},\n      \"rank\": {},\n"
        "      \"actions\": [\n{}\n      ]\n    }}",
        stage, int64_t(stage) * stride, actionLines(simulated->stages[stage])));
  return fmt::format("[\n{}\n  ]", fmt::join(rows, ",\n"));
}

/// The launches of a step of this run on a GPU.
StepLaunches launchesOf(const RunOptions &options, const Plan &plan) {
  return stepLaunches(plan.program, plan.launches, options.skip.isOn());
}

ordered_json kernelsJson(const StepLaunches &step) {
  ordered_json list = ordered_json::array();
  for (const LaunchRow &row : step.rows)
    list.push_back({{"kernel", row.kernel},
                    {"launches", row.launches},
                    {"bytes", row.bytes},
                    {"operations", row.operations}});
  return list;
}

/// Bytes that the runtime takes on a GPU beside the arena are under "runtime".
ordered_json programJson(const RunOptions &options, const PlanAnswer &answer) {
  const Program &program = answer.plan.program;
  bool hasBarrier = hasStepBarrier(program, options.optimizer, options.skip);
  DivisionReport divisions = explainDivision(program, answer.plan.costs);
  ordered_json ranks = ordered_json::array();
  for (const Stage &rank : program.stages)
    ranks.push_back({{"bytes", rank.arenaBytes},
                     {"host_bytes", rank.hostBytes},
                     {"uses", usesJson(rank)}});
  ordered_json json = {
      {"model", program.model},
      {"schedule", program.schedule},
      {"parameters", program.parameterCount},
      {"flops_per_token", program.flopsPerToken},
      {"chunks", answer.plan.timeline.shape.chunks()},
      {"microbatches", program.microbatches},
      {"accumulation_steps", program.accumulationSteps},
      {"bubble", program.bubble},
      {"step_barrier", hasBarrier},
      {"mesh", meshJson(program)},
      {"axes", axesJson(divisions)},
      {"operations", divisions.operations},
      {"even_share", divisions.evenShare},
      {"stages", ranks},
      {"policies", policiesJson(answer.choices.policies)},
      {"transfers", transfersJson(answer.plan.transfers)},
      {"transfers_by_axes", axisTransfersJson(answer.plan.transfers)}};
  if (!hasBarrier)
    json["steady_bubble"] = program.steadyBubble;
  if (!traitsOf(program.device).isGpu)
    return json;
  RuntimeMemory memory = runtimeMemory(program);
  json["runtime"] = {{"bytes", memory.bytes},
                     {"nccl_bytes", memory.exchangeBytes + memory.hostBytes},
                     {"staging_bytes", kStagingBytes}};
  StepLaunches step = launchesOf(options, answer.plan);
  json["launches"] = step.sum().launches;
  json["kernels"] = kernelsJson(step);
  return json;
}

/// The plan of a step without a step barrier, beside that of one with it.
std::string describeSteady(const Program &program,
                           const std::vector<PolicyPlan> &policies,
                           const std::optional<MeasuredStep> &measured) {
  std::string text = fmt::format(
      "no barrier between steps: bubble {:.1f} %, or {:.1f} % with one\n",
      100 * program.steadyBubble, 100 * program.bubble);
  for (const PolicyPlan &row : policies)
    if (row.chosen && row.steadyStep)
      text += fmt::format("  a step without its update, on the machine: "
                          "{:.3f} ms, or {:.3f} ms\n",
                          1e3 * *row.steadyStep, 1e3 * row.time.timeline);
  if (measured)
    text += fmt::format("  a step by measured costs: {:.3f} ms, or {:.3f} ms; "
                        "bubble {:.1f} %, or {:.1f} %\n",
                        1e3 * measured->steady.time, 1e3 * measured->seconds(),
                        100 * measured->steady.bubble,
                        100 * measured->simulation.bubble);
  return text;
}

/// The timeline in unit slots, in the width of a terminal.
std::string gridOf(const Plan &plan) {
  auto slots = pipe::simulate(plan.timeline, {});
  int width = terminalWidth();
  return slots && width > 0
             ? pipe::drawGrid(plan.timeline, *slots, {false, width})
             : plan.program.timeline;
}

/// ", 34 chunks of layers, weights gathered per-repeat" where the planner has
/// chosen so.
std::string chosenWindows(const PlanChoices &choices) {
  std::string text;
  if (choices.repeats > 1)
    text += ", " + counted(choices.repeats, "chunk") + " of layers";
  if (choices.gathers)
    text += std::string(", weights gathered ") + nameOf(*choices.gathers);
  return text;
}

} // namespace

std::string describePlan(const RunOptions &options, const PlanReport &report) {
  const PlanChoices &choices = report.answer.choices;
  const auto &policies = choices.policies;
  const auto &measured = report.measured;
  const Program &program = report.answer.plan.program;
  std::string text = fmt::format(
      "{}: {} parameters, {} operations per token (forward and "
      "backward)\n{}, {}{}, {}, bubble {:.1f} %\n\n",
      program.model, grouped(program.parameterCount),
      grouped(static_cast<int64_t>(program.flopsPerToken)), program.schedule,
      ranksText(program), chosenWindows(choices),
      counted(program.microbatches, "microbatch", "es"), 100 * program.bubble);
  text += describeForecast(options, report.answer.plan) + "\n";
  DivisionReport divisions = explainDivision(program, report.answer.plan.costs);
  if (std::string shortfall = describeShortfall(divisions); !shortfall.empty())
    text += shortfall + "\n";
  text += fmt::format("{}\n{}\n{}", gridOf(report.answer.plan), program.plan,
                      describePolicies(policies));
  if (choices.remat)
    text += "\n" + describeChoice(*choices.remat, options.compiler.memoryText);
  if (!hasStepBarrier(program, options.optimizer, options.skip))
    text += "\n" + describeSteady(program, policies, measured);
  if (measured)
    text += fmt::format("\na step by measured costs takes {:.3f} ms, of which "
                        "{:.3f} ms are its end; bubble {:.1f} %\n",
                        1e3 * measured->seconds(), 1e3 * measured->stepEnd,
                        100 * measured->simulation.bubble);
  if (!options.checkpoints.folder.empty())
    text += "\n" + describeCheckpointCopy(program);
  if (options.optimizer.postValidate)
    text += "\n" + describePostValidate(program);
  if (options.explain)
    text += "\n" + describeDivision(divisions) + "\n" +
            describeTransfers(report.answer.plan.transfers,
                              report.answer.plan.machine) +
            describeAxisTransfers(sumOverAxes(report.answer.plan.transfers));
  if (options.explain && traitsOf(program.device).isGpu)
    text += "\n" + describeLaunches(launchesOf(options, report.answer.plan));
  return text;
}

std::string planJsonText(const ordered_json &json, const PlanReport &report) {
  std::string text = jsonText(json, 2);
  text.resize(text.size() - 2); // "\n}"
  return text + ",\n  \"timeline\": " + timelineText(report.answer.plan) +
         "\n}\n";
}

ordered_json planJson(const RunOptions &options, const PlanReport &report) {
  const Program &program = report.answer.plan.program;
  ordered_json json = programJson(options, report.answer);
  addForecast(options, report.answer.plan, json);
  if (report.answer.choices.gathers)
    json["weight_gather"] = nameOf(*report.answer.choices.gathers);
  if (report.answer.choices.remat)
    json["remat"] = choiceJson(*report.answer.choices.remat);
  if (!options.checkpoints.folder.empty())
    json["checkpoint_copy_bytes"] = checkpointBytes(program);
  if (options.optimizer.postValidate)
    json["post_validate_bytes"] = postValidateBytes(program);
  if (const auto &measured = report.measured)
    json["measured"] = {{"step_seconds", measured->seconds()},
                        {"step_end_seconds", measured->stepEnd},
                        {"bubble", measured->simulation.bubble},
                        {"steady_step_seconds", measured->steady.time},
                        {"steady_bubble", measured->steady.bubble}};
  return json;
}

} // namespace rota
