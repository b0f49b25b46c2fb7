// SPDX-License-Identifier: Apache-2.0
//
// The verbs compile, train, probe, eval and plan.
#include "tools/rota/Verbs.h"
#include "passes/pipeline/schedules/Schedules.h"
#include "runtime/program/RuntimeMemory.h"

#include "runtime/metrics/RunDescription.h"
#include "runtime/program/Text.h"
#include "runtime/train/rank/Launch.h"
#include "runtime/train/step/StepBarrier.h"
#include "tools/rota/CheckpointModel.h"
#include "tools/rota/ChooseActivations.h"
#include "tools/rota/ChooseRemat.h"
#include "tools/rota/Compile.h"
#include "tools/rota/Diagnostics.h"
#include "tools/rota/MeasuredCosts.h"
#include "tools/rota/Process.h"
#include "tools/rota/StateTable.h"
#include "tools/rota/TokenShape.h"

#include <chrono>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

using nlohmann::ordered_json;

namespace rota {
namespace {

/// Reads the model of `options`. Its module lives in `context`.
llvm::FailureOr<mlir::rota::BuiltModel> build(mlir::MLIRContext &context,
                                              const RunOptions &options) {
  return mlir::rota::buildModel(context, options.model, buildOptions(options));
}

mlir::DialectRegistry modelDialects() {
  mlir::DialectRegistry registry;
  mlir::rota::registerModelDialects(registry);
  return registry;
}

/// Sets the policy of `options` that is chosen of `rows`.
std::optional<RematChoice> takeRemat(RunOptions &options,
                                     const std::vector<PolicyPlan> &rows) {
  std::string error;
  std::optional<RematChoice> choice = chooseRemat(options, rows, error);
  if (choice)
    options.remat = choice->plan.policy;
  else
    fmt::print(stderr, "error: {}\n", error);
  return choice;
}

/// What was chosen for `memory`, for people. Said once, by the first process.
void noteChoice(const char *option, const std::string &value,
                const RunOptions &options) {
  if (findLaunch().process == 0)
    fmt::print(stderr, "note: '{}': {}, for {} a rank\n", option, value,
               options.memoryText);
}

/// Bounds the activations of a schedule that is searched, where only bytes are
/// given.
bool boundSchedule(RunOptions &options) {
  if (options.memory == 0 || options.remat == kAutoRemat ||
      !pipe::isSearch(options.schedule) ||
      options.given.contains("activations"))
    return true;
  std::string error;
  if (!chooseActivations(options, error)) {
    fmt::print(stderr, "error: {}\n", error);
    return false;
  }
  if (options.activations > 0)
    noteChoice("activations", std::to_string(options.activations), options);
  return true;
}

/// Compiles the model of `options` to `output`. A model's own weights become
/// those of the options where they name none.
ExitCode compile(RunOptions &options, const std::string &output) {
  if (options.remat == kAutoRemat) {
    if (!takeRemat(options, comparePolicies(options)))
      return kExitBadInput;
    noteChoice("remat", options.remat, options);
  }
  if (!boundSchedule(options))
    return kExitBadInput;
  mlir::MLIRContext context(modelDialects());
  DiagnosticPrinter printer(context, options.remarks);
  auto model = build(context, options);
  if (failed(model))
    return kExitBadInput;
  if (options.weights.empty())
    options.weights = model->weights;
  return compileModel(*model, options, output);
}

/// Compiles a trainer and becomes it, with the arguments of `verb`. `temporary`
/// is removed in between.
int compileThenRun(Command verb, RunOptions options,
                   std::unique_ptr<CheckpointModel> temporary = nullptr) {
  std::error_code error;
  lowering::MemoryFile trainer("rota-trainer", error);
  if (error) {
    fmt::print(stderr, "error: cannot make a file in memory: {}\n",
               error.message());
    return kExitRunFailed;
  }
  options.emit = Level::Executable;
  auto start = std::chrono::steady_clock::now();
  if (ExitCode code = compile(options, trainer.path()))
    return code;
  temporary.reset();
  std::chrono::duration<double> seconds =
      std::chrono::steady_clock::now() - start;
  bool prints = findLaunch().process == 0; // of those that mpirun started
  if (!options.json && prints)
    fmt::print(stderr, "compiled {} in {:.1f} s\n", options.model,
               seconds.count());
  return becomeProgram(trainer, trainerArguments(verb, options));
}

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
                    {"exposed_seconds", report.exposed}});
  return list;
}

/// Null for unpipelined layers, which all stages have.
ordered_json stageJson(const ChunkNeed &need) {
  return need.stage < 0 ? ordered_json() : ordered_json(need.stage);
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
    entry["step_seconds"] = row.step;
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
          {"step_seconds", choice.plan.step},
          {"least_step_seconds", choice.leastStep},
          {"stages", stages},
          {"chunks", chunks}};
}

/// Bytes that the runtime takes on a GPU beside the arena are under "runtime".
ordered_json planJson(const RunOptions &options, const Plan &plan,
                      const std::vector<PolicyPlan> &policies) {
  const Program &program = plan.program;
  bool hasBarrier = hasStepBarrier(program, options.optimizer, options.skip);
  ordered_json ranks = ordered_json::array();
  for (const Stage &rank : program.stages)
    ranks.push_back({{"bytes", rank.arenaBytes},
                     {"host_bytes", rank.hostBytes},
                     {"uses", usesJson(rank)}});
  ordered_json json = {{"model", program.model},
                       {"schedule", program.schedule},
                       {"parameters", program.parameterCount},
                       {"flops_per_token", program.flopsPerToken},
                       {"microbatches", program.microbatches},
                       {"accumulation_steps", program.accumulationSteps},
                       {"bubble", program.bubble},
                       {"step_barrier", hasBarrier},
                       {"mesh", meshJson(program)},
                       {"stages", ranks},
                       {"policies", policiesJson(policies)},
                       {"transfers", transfersJson(plan.transfers)},
                       {"timeline", program.timeline}};
  if (!hasBarrier)
    json["steady_bubble"] = program.steadyBubble;
  if (program.device == DeviceKind::Cpu)
    return json;
  RuntimeMemory memory = runtimeMemory(program);
  json["runtime"] = {{"bytes", memory.bytes},
                     {"nccl_bytes", memory.exchangeBytes + memory.hostBytes},
                     {"staging_bytes", kStagingBytes}};
  return json;
}

} // namespace

int runCompile(const RunOptions &given) {
  RunOptions options = given;
  bool toFile = options.emit == Level::Executable;
  std::string output = !options.output.empty() ? options.output
                       : toFile                ? "trainer"
                                               : "-";
  return compile(options, output);
}

int runTrain(const RunOptions &options) {
  return compileThenRun(Command::Train, options);
}

int runProbe(const RunOptions &given) {
  RunOptions options = given;
  std::string error;
  if (!readTokenShape(options, error)) {
    fmt::print(stderr, "error: {}\n", error);
    return kExitBadInput;
  }
  return compileThenRun(Command::Probe, std::move(options));
}

int runEval(const RunOptions &given) {
  RunOptions options = given;
  std::string error;
  auto model = std::make_unique<CheckpointModel>();
  if (!model->complete(options, error)) {
    fmt::print(stderr, "error: {}\n", error);
    return kExitBadInput;
  }
  // The loss of an evaluation is the cross-entropy alone.
  options.given.insert("mtp-loss");
  options.predictionLoss = 0;
  return compileThenRun(Command::Eval, std::move(options), std::move(model));
}

/// The plan of a step without a step barrier, beside that of one with it.
static std::string describeSteady(const Program &program,
                                  const std::vector<PolicyPlan> &policies,
                                  const std::optional<MeasuredStep> &measured) {
  std::string text = fmt::format(
      "no barrier between steps: bubble {:.1f} %, or {:.1f} % with one\n",
      100 * program.steadyBubble, 100 * program.bubble);
  for (const PolicyPlan &row : policies)
    if (row.chosen && row.steadyStep)
      text += fmt::format("  a step without its update, by assumed speed: "
                          "{:.3f} ms, or {:.3f} ms\n",
                          1e3 * *row.steadyStep, 1e3 * row.step);
  if (measured)
    text += fmt::format("  a step by measured costs: {:.3f} ms, or {:.3f} ms; "
                        "bubble {:.1f} %, or {:.1f} %\n",
                        1e3 * measured->steady.time, 1e3 * measured->seconds(),
                        100 * measured->steady.bubble,
                        100 * measured->simulation.bubble);
  return text;
}

/// Prints what a plan says, for people.
static void printPlan(const RunOptions &options, const Plan &plan,
                      const std::vector<PolicyPlan> &policies,
                      const std::optional<RematChoice> &choice,
                      const std::optional<MeasuredStep> &measured) {
  const Program &program = plan.program;
  fmt::print("{}: {} parameters, {} operations per token (forward and "
             "backward)\n{}, {} ranks, {} microbatches, bubble {:.1f} %\n\n",
             program.model, grouped(program.parameterCount),
             grouped(static_cast<int64_t>(program.flopsPerToken)),
             program.schedule, program.stages.size(), program.microbatches,
             100 * program.bubble);
  fmt::print("{}\n{}\n{}", program.timeline, program.plan,
             describePolicies(policies));
  if (choice)
    fmt::print("\n{}", describeChoice(*choice, options));
  if (!hasStepBarrier(program, options.optimizer, options.skip))
    fmt::print("\n{}", describeSteady(program, policies, measured));
  if (measured)
    fmt::print("\na step by measured costs takes {:.3f} ms, of which {:.3f} ms "
               "are its end; bubble {:.1f} %\n",
               1e3 * measured->seconds(), 1e3 * measured->stepEnd,
               100 * measured->simulation.bubble);
  if (!options.checkpoints.folder.empty())
    fmt::print("\n{}", describeCheckpointCopy(program));
  if (options.optimizer.postValidate)
    fmt::print("\n{}", describePostValidate(program));
  if (options.explain)
    fmt::print("\n{}", describeTransfers(plan.transfers, Assumptions()));
}

int runPlan(const RunOptions &given) {
  RunOptions options = given;
  if (!boundSchedule(options))
    return kExitBadInput;
  std::vector<PolicyPlan> policies;
  std::optional<RematChoice> choice;
  if (options.remat == kAutoRemat) {
    policies = comparePolicies(options);
    choice = takeRemat(options, policies);
    if (!choice)
      return kExitBadInput;
    auto row = llvm::find_if(policies, [&](const PolicyPlan &policy) {
      return policy.policy == options.remat;
    });
    if (row == policies.end())
      policies.push_back(choice->plan);
    else
      row->chosen = true;
  }
  mlir::MLIRContext context(modelDialects());
  DiagnosticPrinter printer(context, options.remarks);
  auto model = build(context, options);
  if (failed(model))
    return kExitBadInput;
  Plan plan;
  if (ExitCode code = planModel(*model, options, plan))
    return code;
  const Program *program = &plan.program;
  if (options.state) {
    fmt::print("{}", options.json ? stateJson(*program).dump(2) + "\n"
                                  : describeState(*program));
    return kExitSuccess;
  }
  std::optional<MeasuredStep> measured;
  if (!options.measured.empty()) {
    std::string error;
    measured = simulateMeasured(options.measured, plan.timeline,
                                int(options.costs.cores), error);
    if (!measured) {
      fmt::print(stderr, "error: 'measured': {}\n", error);
      return kExitBadInput;
    }
  }
  if (policies.empty())
    policies = comparePolicies(options);
  if (options.json) {
    ordered_json json = planJson(options, plan, policies);
    if (choice)
      json["remat"] = choiceJson(*choice);
    if (!options.checkpoints.folder.empty())
      json["checkpoint_copy_bytes"] = checkpointBytes(*program);
    if (options.optimizer.postValidate)
      json["post_validate_bytes"] = postValidateBytes(*program);
    if (measured)
      json["measured"] = {{"step_seconds", measured->seconds()},
                          {"step_end_seconds", measured->stepEnd},
                          {"bubble", measured->simulation.bubble},
                          {"steady_step_seconds", measured->steady.time},
                          {"steady_bubble", measured->steady.bubble}};
    fmt::print("{}\n", json.dump(2));
    return kExitSuccess;
  }
  printPlan(options, plan, policies, choice, measured);
  return kExitSuccess;
}

} // namespace rota
