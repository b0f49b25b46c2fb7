// SPDX-License-Identifier: Apache-2.0
#include "tools/rota/plan/Search.h"

#include "ir/rota/Rota.h"
#include "runtime/files/Streams.h"
#include "runtime/program/JsonText.h"
#include "runtime/text/Text.h"
#include "tools/compiler/ThreadedContext.h"
#include "tools/rota/CheckInputs.h"
#include "tools/rota/Compile.h"
#include "tools/rota/Requests.h"
#include "tools/rota/RunFile.h"
#include "tools/rota/plan/PlanReport.h"
#include "tools/rota/plan/SearchReport.h"

#include "llvm/ADT/StringExtras.h"

#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <thread>
#include <unistd.h>

namespace rota {
namespace {

/// Axes within layers span no more ranks by default, however large a node is.
constexpr int64_t kMostNodeDevices = 16;

/// The axes that the text of a mesh names, without those of size -1; all of
/// them where it has as many ranks as there are devices.
std::array<std::optional<int64_t>, 7> fixedAxes(const std::string &text,
                                                int64_t devices) {
  std::array<std::optional<int64_t>, 7> axes;
  std::string error;
  auto sizes = mlir::rota::parseMeshSizes(text, error);
  int64_t product = 1;
  for (size_t axis = 0; axis < axes.size(); ++axis) {
    int64_t size = (*sizes)[axis];
    product *= size;
    auto name = mlir::rota::stringifyMeshAxis(mlir::rota::MeshAxis(axis));
    for (llvm::StringRef part : llvm::split(llvm::StringRef(text), ','))
      if (part.split('=').first.trim() == name &&
          size != mlir::rota::kInferredSize)
        axes[axis] = size;
  }
  if (product == devices)
    for (std::optional<int64_t> &size : axes)
      size = size.value_or(1);
  return axes;
}

FixedChoices fixedChoices(const RunOptions &options) {
  const CompilerOptions &compiler = options.compiler;
  const auto &schedule = compiler.schedule;
  auto given = [&](const char *name, auto value) {
    return options.given.contains(name) ? std::optional(value) : std::nullopt;
  };
  FixedChoices fixed;
  if (options.given.contains("mesh"))
    fixed.axes = fixedAxes(compiler.shard.meshText, options.devices);
  fixed.schedule = given("schedule", schedule.schedule);
  fixed.repeats = given("repeats", schedule.repeats);
  fixed.microbatches = given("microbatches", schedule.microbatches);
  fixed.accumulate = given("accumulate", compiler.accumulationSteps);
  fixed.placement = given("placement", schedule.placement);
  fixed.split = given("split", schedule.split);
  fixed.splitBackward = given("split-backward", schedule.splitBackward);
  fixed.shardOptimizer =
      given("shard-optimizer", compiler.shard.shardOptimizer);
  fixed.exchange = given("context-exchange", compiler.shard.exchange);
  if (compiler.differentiate.remat != kAutoRemat)
    fixed.remat = given("remat", compiler.differentiate.remat);
  if (compiler.complete.mode != pipe::GatherMode::Auto)
    fixed.gathers = given("weight-gather", compiler.complete.mode);
  return fixed;
}

/// Rewrites a line of standard error, where that is a terminal.
class ProgressLine {
public:
  void print(const SearchProgress &progress) {
    if (!isShown)
      return;
    std::string best = progress.best > 0
                           ? fmt::format(", best step {:.4g} s", progress.best)
                           : "";
    fmt::print(stderr, "\r\033[K{}: {} of {}{}", progress.work, progress.done,
               progress.all, best);
    std::fflush(stderr);
    hasPrinted = true;
  }
  ~ProgressLine() {
    if (hasPrinted)
      fmt::print(stderr, "\r\033[K");
  }

private:
  bool isShown = isatty(STDERR_FILENO) != 0;
  bool hasPrinted = false;
};

/// Why no plan fits.
std::string whyNone(const SearchAnswer &answer, const RunOptions &options) {
  const SearchCounts &counts = answer.counts;
  if (!answer.nearest)
    return fmt::format("'search': expected a plan within the time, got none of "
                       "{}{}",
                       counted(int64_t(counts.candidates), "candidate"),
                       answer.refusal.empty() ? "" : ": " + answer.refusal);
  int64_t bytes = answer.nearest->bytes;
  int64_t memory = options.compiler.memory;
  return fmt::format(
      "'memory': expected at least {} bytes, {} more than {}, for the nearest "
      "plan of {}{}: {}",
      grouped(bytes), grouped(bytes - memory), options.compiler.memoryText,
      counted(int64_t(counts.candidates), "candidate"),
      answer.isCut ? " in a search that its time has cut" : "",
      flagsOf(answer.nearest->candidate));
}

/// Writes the page of the best plan, with the others beside it.
int writePage(const RunOptions &options, const SearchRequest &request,
              const SearchAnswer &answer) {
  PlanRequest best = requestOf(request.plan, answer.best.front().candidate);
  auto threaded = threadedContext(modelDialects());
  mlir::MLIRContext &context = *threaded;
  DiagnosticPrinter printer(context, options.remarks);
  PlanReport report;
  std::string error;
  if (ExitCode code = makePlan(context, best, report.answer, error))
    return error.empty() ? code : reportBadInput(error);
  report.answer.choices.policies = comparePolicies(best);
  report.searched = answer.best;
  for (const PlannedCandidate &plan : answer.front)
    if (std::ranges::none_of(answer.best, [&](const PlannedCandidate &other) {
          return flagsOf(other.candidate) == flagsOf(plan.candidate);
        }))
      report.searched.push_back(plan);
  return writePlanPage(options, report, planJson(options, report));
}

} // namespace

SearchRequest searchRequest(const RunOptions &options) {
  SearchRequest request;
  request.plan = planRequest(options);
  request.fixed = fixedChoices(options);
  request.batchSize = options.batchSize;
  request.devices = options.devices;
  if (const auto &machine = options.compiler.machine;
      machine && machine->network.size() > 1)
    request.nodeDevices =
        std::min(kMostNodeDevices, machine->network.front().devices);
  request.limits.threads =
      std::max(1, int(std::min(4U, std::thread::hardware_concurrency())));
  return request;
}

int runSearch(const RunOptions &options) {
  std::string error;
  if (options.output == "-")
    return reportBadInput("'output': expected a path to write a RUN.json to, "
                          "got '-'");
  if (!options.output.empty() && !options.compiler.build.config.empty())
    return reportBadInput("'output': expected 'model' beside 'import', since a "
                          "RUN.json names the model by its path");
  if (!options.output.empty() && !checkOutput(options.output, error))
    return reportBadInput(error);
  SearchRequest request = searchRequest(options);
  std::optional<SearchAnswer> answer;
  {
    ProgressLine line;
    request.progress = [&](const SearchProgress &progress) {
      line.print(progress);
    };
    answer = searchPlan(request, error);
  }
  if (!answer)
    return reportBadInput(error);
  if (answer->best.empty())
    return reportBadInput(whyNone(*answer, options));
  PlanSearchReport report{options, request, *answer};
  fmt::print("{}", options.json ? jsonText(searchJson(report), 2) + "\n"
                                : describeSearch(report));
  if (!options.report.empty())
    if (int code = writePage(options, request, *answer))
      return code;
  if (options.output.empty())
    return kExitSuccess;
  auto keys = runFile(options, settingsOf(answer->best.front().candidate));
  return writeOutput(options.output, jsonText(keys, 2) + "\n");
}

} // namespace rota
