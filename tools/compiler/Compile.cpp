// SPDX-License-Identifier: Apache-2.0
//
// Runs the phases of the compiler in order, down to the level that is asked
// for.
#include "tools/compiler/Compile.h"

#include "lowering/Pipeline.h"
#include "lowering/gpu/NvvmModule.h"
#include "runtime/files/Streams.h"
#include "runtime/program/DeviceTraits.h"
#include "runtime/program/RuntimeMemory.h"
#include "runtime/text/Text.h"

#include "mlir/Pass/PassInstrumentation.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/FileSystem.h"

#include <fmt/format.h>

using namespace mlir;

namespace rota {
namespace {

/// Remembers the pass that failed.
struct FailedPass : PassInstrumentation {
  void runAfterPassFailed(Pass *pass, Operation *) override {
    name = pass->getArgument().str();
  }
  std::string name;
};

class Compilation {
public:
  Compilation(mlir::rota::BuiltModel &model, const CompilerOptions &options)
      : options(options), name(model.name), config(model.config),
        module(std::move(model.module)), loc(module->getLoc()) {
    if (options.machine)
      mlir::rota::setMachine(*module, *options.machine);
  }

  ExitCode write(const CompilerOutput &output) {
    Level level = output.level;
    if (level == Level::Executable)
      if (std::string error = wrongTrainer(output.path); !error.empty())
        return report(kExitBadInput, "'output': " + error);
    if (level == Level::PTX && !traitsOf(options.target.device).isGpu)
      return report(kExitBadInput, "'emit': expected a device with GPU kernels "
                                   "for 'ptx', such as 'simt', got 'cpu'");
    if (std::string error = wrongChips(level); !error.empty())
      return report(kExitBadInput, "'target-gpu': " + error);
    if (ExitCode code = lowerTo(level))
      return code;
    if (output.transfers && level >= Level::LLVM)
      llvm::errs() << describeTransfers(lowering->getTransfers(),
                                        mlir::rota::machineOf(*module));
    if (level == Level::Executable)
      return codeOf(lowering->link(output.path, options.link), kExitRunFailed);
    FailureOr<std::string> text = level == Level::LLVM ? lowering->emitText()
                                  : level == Level::PTX
                                      ? lowering->emitPtxText(ptxChip())
                                      : print();
    if (failed(text))
      return kExitRunFailed;
    return ExitCode(writeOutput(output.path, *text));
  }

  ExitCode plan(bool isVerified, Plan &result) {
    if (ExitCode code = lowerTo(Level::Kernels))
      return code;
    if (ExitCode code = planMemory())
      return code;
    if (ExitCode code = isVerified ? verifyPlan() : kExitSuccess)
      return code;
    result = {
        lowering->getProgram(),         lowering->getCosts(),
        lowering->getTimeline(),        lowering->getTransfers(),
        lowering->getLaunches(),        mlir::rota::summarizeResiduals(*module),
        lowering->getLayout(),          lowering->getChunks(),
        mlir::rota::machineOf(*module), fullFlopsPerToken};
    return kExitSuccess;
  }

private:
  /// The mistake in the path of a trainer; empty: none.
  static std::string wrongTrainer(const std::string &path) {
    if (path == "-")
      return "expected a path to write the trainer to, got '-'";
    llvm::sys::fs::file_status status;
    bool isThere = !llvm::sys::fs::status(path, status);
    return isThere && !llvm::sys::fs::is_regular_file(status)
               ? "expected a regular file to write the trainer to, got '" +
                     path + "'"
               : "";
  }

  /// The mistake in the chips for a level; empty: none.
  std::string wrongChips(Level level) const {
    const std::vector<std::string> &chips = options.target.gpus;
    if (level == Level::PTX && chips.size() > 1)
      return "expected one chip for 'ptx', got " + std::to_string(chips.size());
    DeviceTraits device = traitsOf(options.target.device);
    if (level > Level::Kernels && level != Level::PTX && device.isGpu &&
        !device.isEmulated)
      for (const std::string &chip : chips)
        if (std::string error = lowering::unfitForTrainers(chip);
            !error.empty())
          return error;
    return "";
  }

  /// The chip of level `ptx`.
  StringRef ptxChip() const {
    const std::vector<std::string> &chips = options.target.gpus;
    return chips.empty() ? StringRef("sm_90") : StringRef(chips.front());
  }

  /// Runs each phase whose result `level` needs.
  ExitCode lowerTo(Level level) {
    constexpr std::pair<Level, ExitCode (Compilation::*)()> phases[] = {
        {Level::Rota, &Compilation::freeze},
        {Level::Differentiated, &Compilation::scheduleLayers},
        {Level::Differentiated, &Compilation::differentiate},
        {Level::Sharded, &Compilation::shard},
        {Level::Pipe, &Compilation::completeTimeline},
        {Level::Kernels, &Compilation::formKernels},
        {Level::LLVM, &Compilation::planMemory},
        {Level::LLVM, &Compilation::verifyPlan}};
    for (auto [made, phase] : phases)
      if (made <= level)
        if (ExitCode code = (this->*phase)())
          return code;
    return kExitSuccess;
  }

  ExitCode freeze() {
    return runPasses(mlir::rota::buildFreezePipeline, options.freeze,
                     kExitRunFailed);
  }

  ExitCode scheduleLayers() {
    auto model = mlir::rota::Model::get(*module);
    if (failed(model))
      return kExitBadInput;
    fullFlopsPerToken = model->fullFlopsPerToken();
    lowering.emplace(*module, lowering::ModelFacts{
                                  name, model->flopsPerToken(), config,
                                  options.accumulationSteps, options.optimizer,
                                  options.modelOptions, options.samples});
    if (failed(lowering->selectMachine(options.target)))
      return kExitBadInput;
    // The verifier judges a timeline that may be the user's.
    return runPasses(mlir::pipe::buildScheduleLayersPipeline, options.schedule,
                     kExitBadInput);
  }

  ExitCode differentiate() {
    return runPasses(mlir::rota::buildDifferentiatePipeline,
                     options.differentiate, kExitRunFailed);
  }

  ExitCode shard() {
    return runPasses(mlir::rota::buildShardPipeline, options.shard,
                     kExitRunFailed);
  }

  ExitCode completeTimeline() {
    return runPasses(mlir::pipe::buildCompleteTimelinePipeline,
                     options.complete, kExitRunFailed);
  }

  ExitCode formKernels() {
    return codeOf(lowering->formKernels(), unsupportedModel());
  }
  ExitCode planMemory() {
    if (failed(lowering->plan()))
      return kExitBadInput;
    return options.memory > 0 ? checkMemory() : kExitSuccess;
  }

  ExitCode checkMemory() {
    const Program &program = lowering->getProgram();
    for (size_t stage = 0; stage < program.stages.size(); ++stage)
      if (int64_t bytes = deviceBytes(program, stage); bytes > options.memory)
        return report(kExitBadInput,
                      fmt::format("'memory': expected at most {} for a rank, "
                                  "got {} bytes on stage {}",
                                  options.memoryText, grouped(bytes), stage));
    return kExitSuccess;
  }
  ExitCode verifyPlan() { return codeOf(lowering->verify(), kExitRunFailed); }

  /// Runs a phase's pipeline. Passes fail because of the user's input, but the
  /// verifier at the end of a phase returns `ofVerifier`.
  template <typename Options>
  ExitCode runPasses(void (*build)(OpPassManager &, const Options &),
                     const Options &settings, ExitCode ofVerifier) {
    PassManager manager(module->getContext(), ModuleOp::getOperationName());
    build(manager, settings);
    auto failedPass = std::make_unique<FailedPass>();
    const FailedPass &last = *failedPass;
    manager.addInstrumentation(std::move(failedPass));
    if (succeeded(manager.run(*module)))
      return kExitSuccess;
    return last.name.starts_with("verify-") ? ofVerifier : kExitBadInput;
  }

  /// The code when lowering does not know what the functions hold. The models
  /// that Rota builds are supported; a module of the user's may not be.
  ExitCode unsupportedModel() const {
    return StringRef(options.model).ends_with(".mlir") ? kExitBadInput
                                                       : kExitRunFailed;
  }

  static ExitCode codeOf(LogicalResult result, ExitCode ofFailure) {
    return succeeded(result) ? kExitSuccess : ofFailure;
  }

  ExitCode report(ExitCode code, StringRef message) {
    emitError(loc) << message;
    return code;
  }

  FailureOr<std::string> print() {
    std::string text;
    llvm::raw_string_ostream stream(text);
    module->print(stream);
    stream << "\n";
    return text;
  }

  const CompilerOptions &options;
  std::string name, config; // the model's
  OwningOpRef<ModuleOp> module;
  Location loc;
  double fullFlopsPerToken = 0; // the model's
  std::optional<lowering::ProgramLowering> lowering;
};

} // namespace

ExitCode compileModel(mlir::rota::BuiltModel &model,
                      const CompilerOptions &options,
                      const CompilerOutput &output) {
  return Compilation(model, options).write(output);
}

ExitCode planModel(mlir::rota::BuiltModel &model,
                   const CompilerOptions &options, Plan &plan) {
  return Compilation(model, options).plan(/*isVerified=*/true, plan);
}

ExitCode estimateModel(mlir::rota::BuiltModel &model,
                       const CompilerOptions &options, Plan &plan) {
  return Compilation(model, options).plan(/*isVerified=*/false, plan);
}

} // namespace rota
