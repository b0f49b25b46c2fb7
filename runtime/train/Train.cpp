// SPDX-License-Identifier: Apache-2.0
//
// The training loop, which every rank runs, and the trainer's main function.
#include "runtime/train/Train.h"
#include "runtime/Error.h"
#include "runtime/checkpoint/WriteFile.h"
#include "runtime/program/Verify.h"
#include "runtime/train/Gather.h"
#include "runtime/train/Initialize.h"
#include "runtime/train/Launch.h"
#include "runtime/train/Optimizer.h"
#include "runtime/train/Report.h"
#include "runtime/train/Tensors.h"

#include <chrono>
#include <csignal>
#include <fmt/format.h>
#include <thread>
#include <utility>

namespace rota {

namespace {

/// Set by the first SIGINT: the run ends after its step, with validation and
/// saving. The second one ends the process.
volatile std::sig_atomic_t interrupted = 0;

void onInterrupt(int) {
  interrupted = 1;
  std::signal(SIGINT, SIG_DFL);
}

using Clock = std::chrono::steady_clock;

double secondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::unique_ptr<Batches> makeBatches(const Program &program,
                                     const Options &options) {
  if (program.vocabulary == 0) {
    if (!options.data.empty())
      throw InputError("this model's inputs are not tokens: it trains on "
                       "random inputs and takes no --data");
    return std::make_unique<NormalBatches>(program, options.seed);
  }
  if (options.data.empty())
    throw InputError("expected --data with at least one file");
  auto tokens = std::make_unique<Tokens>(
      options.data, options.tokenType,
      TokenBounds{program.vocabulary, program.classes});
  return std::make_unique<TokenBatches>(program, std::move(tokens),
                                        options.validationFraction,
                                        options.validationSteps, options.seed);
}

/// Positions of a batch that are trained on: tokens, or rows of a model whose
/// inputs are not tokens.
int64_t batchTokens(const Program &program) {
  return program.microbatches * program.input.shape[0] * program.input.shape[1];
}

/// One rank's training run, from the first step to the saved weights.
class Training {
public:
  Training(const Run &run, Rank &rank, const Batches &batches)
      : program(rank.program()), options(run.options), batches(batches),
        weights(run.weights), rank(rank),
        report(program, options, rank.number() == 0),
        executor(rank, !options.trace.empty()),
        optimizer(rank, options.optimizer) {}

  void run() {
    report.begin(batches.describe());
    if (weights && !weights->unused().empty())
      report.note(fmt::format(
          "'{}' holds {} tensors that this model does not have, '{}' first",
          options.weights, weights->unused().size(), weights->unused()[0]));
    initialize(rank, options.seed, weights);
    start = Clock::now();
    lastEnd = deviceSeconds();
    for (int64_t t = 1; t <= options.steps; ++t)
      if (!step(t))
        break;
    std::vector<RankReport> reports = gatherReports(rank, executor);
    report.end(progress, reports);
    if (options.profile)
      report.profile(gatherProfiles(rank), phases, reports);
    if (!options.trace.empty())
      writeTrace(rank, executor, options.trace);
    if (!options.save.empty())
      save();
  }

private:
  /// A step that the device may still work on.
  struct Pending {
    int64_t number = 0;
    double learningRate = 0.0;
    std::unique_ptr<HostRead> results; // RuntimeMemory::result and losses
    Device::TimePoint end = 0;
  };

  /// Returns whether another step follows. The results of a step are read
  /// while the next one runs, where the device works on its own.
  bool step(int64_t t) {
    Pending now{t, learningRateAt(options.optimizer, t, options.steps)};
    timed("data", [&] { loadBatch(rank, batches, Split::Train, t - 1); });
    optimizer.begin(now.learningRate);
    compute();
    now.results = rank.device().startRead(rank.runtimeAt(rank.places().result),
                                          rank.places().resultBytes);
    now.end = rank.device().mark();
    bool over =
        options.timeLimit > 0 && secondsSince(start) >= options.timeLimit;
    bool last =
        decideOnRankZero(rank, t == options.steps || over || interrupted);
    if (previous)
      finish(*std::exchange(previous, std::nullopt), false);
    if (last || !mayWait || validates(t, last))
      finish(now, last);
    else
      previous = std::move(now);
    return !last;
  }

  /// The work of a step, the same each time: recorded once the results of the
  /// first step are known, where the device and the communicator can.
  void compute() {
    if (recording)
      return replay();
    bool records = mayRecord && progress.step > 0;
    if (records) {
      executor.settle();
      rank.device().beginRecording();
    }
    timed("timeline", [&] {
      records ? executor.record() : executor.run(Executor::Mode::Train);
    });
    startLoss(rank);
    timed("optimizer", [&] {
      optimizer.sumGradients();
      optimizer.update();
    });
    if (!records)
      return;
    recording = rank.device().endRecording();
    replay();
  }

  void replay() {
    recording->run();
    ++progress.replayed;
  }

  bool validates(int64_t t, bool last) const {
    int64_t interval = options.validationInterval;
    return batches.hasValidation() &&
           (last || (interval > 0 && t % interval == 0));
  }

  /// Reads a step's results and reports them.
  void finish(const Pending &pending, bool last) {
    int64_t t = pending.number;
    std::span<const char> bytes = pending.results->wait();
    const RuntimeMemory &places = rank.places();
    auto *result = reinterpret_cast<const double *>(bytes.data());
    auto *losses = reinterpret_cast<const float *>(
        bytes.data() + (places.losses - places.result));
    progress.step = t;
    progress.loss =
        finishLoss(rank, {losses, static_cast<size_t>(2 * places.lossRanks *
                                                      program.microbatches)})
            .mean();
    progress.learningRate = pending.learningRate;
    progress.gradientNorm = optimizer.readNorm({result, 3});
    double end = rank.device().secondsAt(pending.end);
    double seconds = end - std::exchange(lastEnd, end);
    measure(seconds);
    add("step", seconds);
    if (report.keeps(t, last))
      progress.bubble = gatherBubble(rank, executor.meanSeconds());
    progress.validationLoss.reset();
    if (validates(t, last)) {
      timed("validation", [&] { progress.validationLoss = validate(); });
      lastEnd = deviceSeconds();
    }
    if (recording) {
      executor.settle(); // of a validation
      rank.device().forget(pending.end);
    }
    progress.seconds = secondsSince(start);
    progress.secondsLeft = last ? 0.0 : secondsLeft(t);
    report.step(progress, last);
  }

  /// Waits for the device.
  double deviceSeconds() const {
    return rank.device().secondsAt(rank.device().mark());
  }

  /// Adds the host's time of `body` to a phase of the profile. On a GPU that is
  /// the time of asking; the phase "step" is on the device's clock.
  template <typename F> void timed(const char *phase, F body) {
    auto begin = Clock::now();
    body();
    add(phase, secondsSince(begin));
  }

  void add(const char *phase, double seconds) {
    Profile::Entry &entry = phases[phase];
    ++entry.calls;
    entry.seconds += seconds;
  }

  /// Throughput over about the last log interval, without validation.
  void measure(double seconds) {
    double weight = 2.0 / (1.0 + static_cast<double>(std::min(
                                     progress.step, options.logInterval)));
    stepSeconds += weight * (seconds - stepSeconds);
    progress.tokensPerSecond =
        static_cast<double>(batchTokens(program)) / stepSeconds;
  }

  double secondsLeft(int64_t t) const {
    double elapsed = secondsSince(start);
    double left = elapsed / static_cast<double>(t) *
                  static_cast<double>(options.steps - t);
    if (options.timeLimit > 0)
      left = std::min(left, options.timeLimit - elapsed);
    return left;
  }

  double validate() {
    Loss total;
    for (int64_t b = 0; b < options.validationSteps; ++b) {
      loadBatch(rank, batches, Split::Validation, b);
      executor.run(Executor::Mode::Evaluate);
      Loss loss = gatherLoss(rank);
      total.sum += loss.sum;
      total.weight += loss.weight;
      total.auxiliary +=
          loss.auxiliary / static_cast<double>(options.validationSteps);
    }
    return total.mean();
  }

  void save() {
    rank.setPosition("saving the weights");
    std::vector<NamedTensor> tensors = tensorsByName(program);
    std::map<std::string, TensorForm> forms;
    for (const NamedTensor &tensor : tensors)
      addForms(tensor, "", forms);
    std::optional<SafetensorsWriter> writer;
    if (rank.number() == 0)
      writer.emplace(options.save, forms);
    for (const NamedTensor &tensor : tensors) {
      std::vector<float> whole = gatherTensor(rank, tensor, &Update::master);
      if (writer)
        writeTensor(*writer, tensor, "", whole);
    }
    if (writer)
      writer->commit();
  }

  const Program &program;
  const Options &options;
  const Batches &batches;
  const Weights *weights;
  Rank &rank;
  Report report;
  Executor executor;
  Optimizer optimizer;
  StepReport progress;
  Profile::Table phases;
  Clock::time_point start;
  double lastEnd = 0.0;     // of a step, on the device's clock
  double stepSeconds = 0.0; // a moving mean
  // Auxiliary losses and profiles need the host in every step.
  const bool mayWait =
      rank.device().isAsynchronous() && program.auxiliaryLosses.empty();
  const bool mayRecord = mayWait && rank.communicator().isRecordable() &&
                         !options.profile && options.trace.empty();
  std::optional<Pending> previous;
  std::unique_ptr<Recording> recording;
};

} // namespace

void loadBatch(Rank &rank, const Batches &batches, Split split, int64_t batch) {
  const Program &program = rank.program();
  std::vector<char> buffers[2];
  auto destination = [&](const DataForm &form, int64_t offset,
                         std::vector<char> &buffer) {
    Part part =
        partOf(form.shape, form.division, program.mesh, rank.coordinates());
    if (offset >= 0)
      buffer.resize(static_cast<size_t>(part.elements() * byteSize(form.type)));
    return Destination{part, offset >= 0 ? buffer.data() : nullptr};
  };
  const Stage &stage = rank.stage();
  Destination input = destination(program.input, stage.inputData, buffers[0]);
  Destination target =
      destination(program.target, stage.targetData, buffers[1]);
  for (int64_t m = 0; m < program.microbatches; ++m) {
    batches.fill(split, batch, m, input, target);
    for (auto [offset, buffer] : {std::pair(stage.inputData, &buffers[0]),
                                  std::pair(stage.targetData, &buffers[1])})
      if (auto bytes = static_cast<int64_t>(buffer->size()); bytes > 0)
        rank.write(*buffer, offset + m * bytes);
  }
}

void train(const Run &run) {
  const Program &program = *run.executable.program;
  std::unique_ptr<Batches> batches = makeBatches(program, run.options);
  interrupted = 0;
  std::signal(SIGINT, onInterrupt);
  run.machine.run([&](Rank &rank) { Training(run, rank, *batches).run(); });
}

/// Connects the ranks, reads the weights and runs the command.
static void runCommand(const Executable &executable, Command command,
                       const Options &options, const ProcessLaunch &launch) {
  Connection connection(*executable.program, options.ranks, launch,
                        /*timing=*/!options.trace.empty());
  try {
    if (launch.process == 0)
      for (const std::string *path :
           {&options.save, &options.output, &options.trace})
        if (!path->empty())
          checkWritable(*path);
    std::unique_ptr<Weights> weights;
    if (!options.weights.empty())
      weights = std::make_unique<Weights>(options.weights, *executable.program);
    int threads = options.threads > 0
                      ? static_cast<int>(options.threads)
                      : shareOfCores(launch, availableCores(), machineCores());
    DeviceOptions device;
    device.threads = threads;
    device.process = launch.localProcess;
    device.seed = static_cast<uint64_t>(options.seed);
    device.allowTf32 = options.allowTf32;
    ProcessRanks machine(executable, connection, device, options.profile);
    Run run{executable, options, machine, weights.get()};
    command == Command::Probe ? probe(run) : train(run);
  } catch (const std::exception &failure) {
    connection.fail(failure.what());
    throw;
  }
}

int runTrainer(int argc, char **argv, const char *description,
               int64_t descriptionBytes, const RotaTask *tasks,
               const RotaKernel *kernels,
               std::span<const RotaGpuCode> gpuCode) {
  Command command;
  Options options;
  ProcessLaunch launch = findLaunch();
  bool speaks = launch.process == 0;
  auto complain = [&](const std::string &message, int code) {
    if (speaks)
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
  if (auto code = parseOptions(argc, argv, speaks, command, options))
    return *code;
  // Under NCCL no rank learns of another one's failure.
  speaks |= options.ranks == RankKind::Nccl;
  try {
    runCommand({&program, tasks, kernels, gpuCode}, command, options, launch);
    return kExitSuccess;
  } catch (const InputError &failure) {
    return complain(failure.what(), kExitBadInput);
  } catch (const std::exception &failure) {
    // A launcher ends all processes when one has failed: the one that speaks
    // needs time to.
    if (!speaks)
      std::this_thread::sleep_for(std::chrono::seconds(1));
    return complain(failure.what(), kExitRunFailed);
  }
}

} // namespace rota
