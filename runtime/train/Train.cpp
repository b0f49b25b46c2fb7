// SPDX-License-Identifier: Apache-2.0
//
// The trainer's main function.
#include "runtime/train/Train.h"
#include "runtime/Error.h"
#include "runtime/checkpoint/Folder.h"
#include "runtime/checkpoint/FolderLock.h"
#include "runtime/collective/mpi/MpiCommunicator.h"
#include "runtime/device/Processor.h"
#include "runtime/files/WriteFile.h"
#include "runtime/metrics/MetricsFolder.h"
#include "runtime/program/Verify.h"
#include "runtime/train/Signals.h"
#include "runtime/train/Training.h"
#include "runtime/train/rank/Launch.h"

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fmt/format.h>
#include <thread>
#include <unistd.h>

namespace rota {

/// Processes that print their last events when a run fails.
static constexpr int kPrintingProcesses = 8;

void train(const Run &run) {
  const Program &program = *run.executable.program;
  if (OptionMistake mistake = checkPrompt(run.options.samples);
      !mistake.option.empty())
    throw InputError("'" + mistake.option + "': " + mistake.message);
  if (run.options.samples.isOn())
    requirePrompt(program, run.options.samples);
  RunData data(program, run.options);
  Identity identity = runIdentity(program, run.options);
  catchSignals();
  ReadAhead readAhead;
  run.machine.run([&](Rank &rank) {
    Training(run, rank, data, identity, readAhead).run();
  });
}

/// The file of this process's flight record.
static std::string flightPath(const Options &options,
                              const ProcessLaunch &launch) {
  std::string path = options.metrics.flightRecord;
  if (path.empty() && !options.metrics.folder.empty())
    path = inFolder(options.metrics.folder, "flight.json");
  if (path.empty()) {
    const char *folder = std::getenv("TMPDIR");
    return inFolder(folder && *folder ? folder : "/tmp",
                    fmt::format("rota-flight-{}.json", getpid()));
  }
  if (launch.processes == 1)
    return path;
  std::filesystem::path parts(path);
  return parts.replace_extension().string() +
         fmt::format("-rank{}", launch.process) +
         std::filesystem::path(path).extension().string();
}

/// Throws InputError where a file that is named cannot be written.
static void checkOutputs(const Options &options, const ProcessLaunch &launch) {
  for (const std::string *path :
       {&options.save, &options.output, &options.trace})
    if (!path->empty())
      checkWritable(*path);
  if (!options.metrics.flightRecord.empty())
    checkWritable(flightPath(options, launch));
}

/// Why the code cannot run on this processor; empty: it can.
static std::string findFault(const CodeProcessor &processor) {
  std::string missing = missingFeatures(processor.features);
  if (missing.empty())
    return "";
  return fmt::format("the code is made for processor '{}': expected a "
                     "processor with {}, got one without; 'rota compile' on "
                     "this machine makes code for it, and --target-cpu names a "
                     "processor",
                     processor.name, missing);
}

/// The line after the message of a run that failed: the checkpoint that it goes
/// on from. Empty where it has none.
static std::string adviceAfterFailure(Command command, const Options &options) {
  const std::string &folder = options.checkpoints.folder;
  if (command != Command::Train || folder.empty())
    return "";
  try {
    std::vector<int64_t> steps = checkpointsIn(folder);
    return steps.empty()
               ? ""
               : fmt::format("note: {} from '{}'\n",
                             options.resume.continuation(),
                             inFolder(folder, checkpointName(steps.back())));
  } catch (const InputError &) {
    return "";
  }
}

/// Connects the ranks, reads the weights and runs the command.
static void runCommand(const Executable &executable, Command command,
                       const Options &options, const ProcessLaunch &launch) {
  // The first processes speak for all.
  bool isNamed =
      !options.metrics.flightRecord.empty() || !options.metrics.folder.empty();
  FlightReport flight(flightPath(options, launch), /*isNew=*/!isNamed,
                      /*prints=*/launch.process < kPrintingProcesses);
  Connection connection(*executable.program, options.ranks, launch,
                        /*timing=*/!options.trace.empty(),
                        [&] { return adviceAfterFailure(command, options); });
  try {
    std::optional<FolderLock> metrics, checkpoints;
    if (launch.process == 0 && !options.metrics.folder.empty()) {
      prepareMetricsFolder(options.metrics.folder);
      metrics.emplace(options.metrics.folder);
    }
    if (launch.process == 0)
      checkOutputs(options, launch);
    const std::string &folder = options.checkpoints.folder;
    if (launch.process == 0 && !folder.empty()) {
      std::error_code isMissing; // a lock excludes its own process, too
      if (!metrics || !std::filesystem::equivalent(
                          folder, options.metrics.folder, isMissing))
        checkpoints.emplace(folder);
      removeUnfinished(folder);
    }
    std::unique_ptr<Weights> weights;
    if (!options.weights.empty())
      weights = std::make_unique<Weights>(options.weights, *executable.program,
                                          options.adapter);
    else if (!options.adapter.empty())
      throw InputError("'adapter': expected 'weights' beside it, to which it "
                       "adds");
    int threads = options.threads > 0
                      ? static_cast<int>(options.threads)
                      : shareOfCores(launch, availableCores(), machineCores());
    DeviceOptions device;
    device.threads = threads;
    device.process = launch.localProcess;
    device.seed = static_cast<uint64_t>(options.seed);
    device.allowTf32 = options.allowTf32;
    device.loadsAhead = options.ranks == RankKind::Nccl;
    ProcessRanks machine(executable, connection, device, options.profile);
    Run run{executable, options, machine, weights.get()};
    command == Command::Probe      ? probe(run)
    : command == Command::Eval     ? evaluate(run)
    : command == Command::Generate ? generate(run)
                                   : train(run);
  } catch (const std::exception &failure) {
    connection.fail(failure.what());
    throw;
  }
}

int runTrainer(int argc, char **argv, const char *description,
               int64_t descriptionBytes, const RotaTask *tasks,
               const RotaKernel *kernels, std::span<const RotaGpuCode> gpuCode,
               const CodeProcessor &processor) {
  Command command;
  Options options;
  ProcessLaunch launch = findLaunch();
  bool prints = launch.process == 0;
  auto complain = [&](const std::string &message, int code) {
    if (prints)
      fmt::print(stderr, "error: {}\n", message);
    return code;
  };
  // A file over a size limit is an error of write, as a full disk is.
  std::signal(SIGXFSZ, SIG_IGN);
  Program program;
  std::string error;
  if (!fromBytes({description, static_cast<size_t>(descriptionBytes)}, program,
                 error) ||
      !verify(program, error))
    return complain("the compiled program is broken: " + error, kExitRunFailed);
  options.optimizer.own = program.options;
  if (auto code = parseOptions(argc, argv, prints, command, options))
    return *code;
  if (std::string fault = findFault(processor); !fault.empty()) {
    prints |= launch.localProcess == 0; // other machines may have another one
    return complain(fault, kExitBadInput);
  }
  // Under NCCL no rank learns of another one's failure.
  prints |= options.ranks == RankKind::Nccl;
  try {
    runCommand({&program, tasks, kernels, gpuCode}, command, options, launch);
    return kExitSuccess;
  } catch (const InputError &failure) {
    return complain(failure.what(), kExitBadInput);
  } catch (const AloneError &failure) {
    prints = true;
    return complain(failure.what(), kExitRunFailed);
  } catch (const std::exception &failure) {
    // A launcher ends all processes when one has failed: the one that prints
    // needs time to.
    if (!prints)
      std::this_thread::sleep_for(std::chrono::seconds(1));
    complain(failure.what(), kExitRunFailed);
    if (prints)
      fmt::print(stderr, "{}", adviceAfterFailure(command, options));
    return kExitRunFailed;
  }
}

} // namespace rota
