// SPDX-License-Identifier: Apache-2.0
//
// `rota compile`, and the compilation of the trainers that other verbs run.
#include "tools/rota/Compile.h"

#include "runtime/text/Text.h"
#include "runtime/train/rank/Launch.h"
#include "tools/compiler/ThreadedContext.h"
#include "tools/rota/CheckAdapter.h"
#include "tools/rota/CheckInputs.h"
#include "tools/rota/InitialWeights.h"
#include "tools/rota/Process.h"
#include "tools/rota/Requests.h"
#include "tools/rota/Verbs.h"
#include "tools/rota/data/TokenizeData.h"

#include <chrono>
#include <fmt/format.h>

namespace rota {

mlir::DialectRegistry modelDialects() {
  mlir::DialectRegistry registry;
  mlir::rota::registerModelDialects(registry);
  return registry;
}

ExitCode reportBadInput(const std::string &error) {
  fmt::print(stderr, "error: {}\n", error);
  return kExitBadInput;
}

int reportNoFile(std::error_code error) {
  fmt::print(stderr, "error: cannot make a file in memory: {}\n",
             error.message());
  return kExitRunFailed;
}

/// Whether this is the first of the processes that a launcher has started.
static bool isFirstProcess() { return findLaunch().process == 0; }

/// A note on what was chosen for the bound on memory.
static void noteChoice(const char *option, const std::string &value,
                       const RunOptions &options) {
  if (isFirstProcess())
    fmt::print(stderr, "note: '{}': {}, for {} a rank\n", option, value,
               options.compiler.memoryText);
}

void noteActivations(const PlanChoices &choices, const RunOptions &options) {
  if (choices.activations > 0)
    noteChoice("activations", numberText(choices.activations), options);
}

/// Whether the inputs are tokens. A module that is no model has an error later.
static bool takesTokens(const mlir::rota::BuiltModel &built) {
  using namespace mlir::rota;
  auto model = Model::get(*built.module);
  return failed(model) ||
         getElementTypeOrSelf(
             FunctionRoles(model->embed).argument(Role::Tokens).type())
             .isInteger();
}

ExitCode compile(Command verb, RunOptions &options, const std::string &output) {
  PlanRequest request = planRequest(options);
  PlanChoices choices;
  std::string error;
  if (!chooseOpen(request, choices, error))
    return reportBadInput(error);
  if (choices.remat)
    noteChoice("remat", choices.remat->plan.policy, options);
  noteActivations(choices, options);
  auto threaded = threadedContext(modelDialects());
  mlir::MLIRContext &context = *threaded;
  DiagnosticPrinter printer(context, options.remarks);
  const CompilerOptions &compiler = request.compiler;
  auto model = mlir::rota::buildModel(context, compiler.model, compiler.build);
  if (failed(model)) {
    if (!options.adapter.empty())
      fmt::print(stderr,
                 "note: rank and targets of adapters are those of "
                 "'adapter' {}\n",
                 options.adapter);
    return kExitBadInput;
  }
  if (!options.adapter.empty() && !checkAdapter(*model, options.adapter, error))
    return reportBadInput(error);
  if (verb != Command::Compile && !findInitialWeights(verb, *model, options))
    return kExitBadInput;
  if (verb == Command::Train &&
      !checkDataGiven(takesTokens(*model), options, error))
    return reportBadInput(error);
  return compileModel(*model, compiler,
                      {options.emit, output, options.explain});
}

ExitCode compileTrainer(Command verb, RunOptions &options,
                        const lowering::MemoryFile &trainer,
                        std::unique_ptr<CheckpointModel> temporary) {
  options.emit = Level::Executable;
  options.compiler.link.runsHere = true;
  auto start = std::chrono::steady_clock::now();
  if (ExitCode code = compile(verb, options, trainer.path()))
    return code;
  bool isTemporary = temporary && temporary->isMade();
  temporary.reset();
  std::chrono::duration<double> seconds =
      std::chrono::steady_clock::now() - start;
  if (!options.json && isFirstProcess())
    fmt::print(stderr, "compiled {} in {:.1f} s\n",
               isTemporary ? options.checkpoint : options.compiler.model,
               seconds.count());
  return kExitSuccess;
}

int compileThenRun(Command verb, RunOptions options,
                   std::unique_ptr<CheckpointModel> temporary) {
  if (ExitCode code = tokenizeData(options))
    return code;
  if (std::string wrong; !checkInputs(verb, options, wrong))
    return reportBadInput(wrong);
  if (auto steps =
          verb == Command::Train ? finishedSteps(options) : std::nullopt) {
    if (isFirstProcess())
      fmt::print("note: step {} is done: none is left\n", *steps);
    return kExitSuccess;
  }
  std::error_code error;
  lowering::MemoryFile trainer("rota-trainer", error);
  if (error)
    return reportNoFile(error);
  if (ExitCode code =
          compileTrainer(verb, options, trainer, std::move(temporary)))
    return code;
  return becomeProgram(trainer, trainerArguments(verb, options),
                       options.samples.decoder);
}

int runCompile(const RunOptions &given) {
  RunOptions options = given;
  if (ExitCode code = findDocumentEnd(options))
    return code;
  bool toFile = options.emit == Level::Executable;
  std::string output = !options.output.empty() ? options.output
                       : toFile                ? "trainer"
                                               : "-";
  std::string error;
  if (output != "-" && !checkOutput(output, error))
    return reportBadInput(error);
  return compile(Command::Compile, options, output);
}

} // namespace rota
