// SPDX-License-Identifier: Apache-2.0
//
// The training loop.
#include "runtime/train/Train.h"
#include "runtime/Error.h"
#include "runtime/checkpoint/WriteFile.h"
#include "runtime/program/Verify.h"
#include "runtime/trace/ChromeTrace.h"
#include "runtime/train/Executor.h"
#include "runtime/train/Initialize.h"
#include "runtime/train/Report.h"

#include <chrono>
#include <csignal>
#include <fmt/format.h>

namespace rota {

namespace {

/// Set by the first Ctrl-C: the run ends after its step, with validation and
/// saving. The second one kills.
volatile std::sig_atomic_t interrupted = 0;

void onInterrupt(int) {
  interrupted = 1;
  std::signal(SIGINT, SIG_DFL);
}

double secondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
      .count();
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
  auto tokens = std::make_unique<Tokens>(options.data, options.tokenType,
                                         program.vocabulary);
  return std::make_unique<TokenBatches>(program, std::move(tokens),
                                        options.validationFraction,
                                        options.validationSteps, options.seed);
}

/// Positions of a batch that are trained on: tokens, or rows of a model whose
/// inputs are not tokens.
int64_t batchTokens(const Program &program) {
  return program.microbatches * program.input.shape[0] * program.input.shape[1];
}

/// One training run, from the first step to the saved weights.
class Training {
public:
  Training(const Executable &executable, const Options &options)
      : program(*executable.program), options(options),
        report(program, options), batches(makeBatches(program, options)),
        weights(openWeights(program, options)),
        machine(executable, threadCount(options), options.profile),
        executor(machine, !options.trace.empty()),
        optimizer(machine, options.adamw) {}

  void run() {
    report.begin(batches->describe());
    if (weights && !weights->unused().empty())
      report.note(fmt::format(
          "'{}' holds {} tensors that this model does not have, '{}' first",
          options.weights, weights->unused().size(), weights->unused()[0]));
    initialize(machine, options.seed, weights.get());
    start = std::chrono::steady_clock::now();
    for (int64_t t = 1; t <= options.steps; ++t)
      if (!step(t))
        break;
    report.end(progress, machine);
    if (options.profile)
      report.profile(machine, phases);
    if (!options.trace.empty())
      writeFile(options.trace, {chromeTrace(program, executor.events())});
    if (!options.save.empty())
      save();
  }

private:
  /// Returns whether another step follows.
  bool step(int64_t t) {
    auto begin = std::chrono::steady_clock::now();
    timed("data", [&] { loadBatch(machine, *batches, Split::Train, t - 1); });
    timed("timeline", [&] { executor.run(Executor::Mode::Train); });
    Executor::Loss loss = executor.loss();
    progress.step = t;
    progress.loss = loss.sum / loss.weight;
    progress.learningRate = learningRateAt(options.adamw, t, options.steps);
    timed("optimizer", [&] {
      progress.gradientNorm =
          optimizer.step(progress.learningRate, loss.weight);
    });
    measure(secondsSince(begin));
    bool over =
        options.timeLimit > 0 && secondsSince(start) >= options.timeLimit;
    bool last = t == options.steps || over || interrupted;
    int64_t interval = options.validationInterval;
    if (batches->hasValidation() &&
        (last || (interval > 0 && t % interval == 0)))
      timed("validation", [&] { progress.validationLoss = validate(); });
    progress.seconds = secondsSince(start);
    progress.secondsLeft = last ? 0.0 : secondsLeft(t);
    report.step(progress, last);
    return !last;
  }

  /// Adds the time of `body` to a phase of the profile.
  template <typename F> void timed(const char *phase, F body) {
    auto begin = std::chrono::steady_clock::now();
    body();
    Profile::Entry &entry = phases[phase];
    ++entry.calls;
    entry.seconds += secondsSince(begin);
  }

  /// Throughput over about the last log interval, without validation.
  void measure(double seconds) {
    double weight = 2.0 / (1.0 + static_cast<double>(std::min(
                                     progress.step, options.logInterval)));
    stepSeconds += weight * (seconds - stepSeconds);
    progress.tokensPerSecond =
        static_cast<double>(batchTokens(program)) / stepSeconds;
    progress.bubble = measuredBubble(program, executor.meanSeconds());
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
    Executor::Loss total;
    for (int64_t b = 0; b < options.validationSteps; ++b) {
      loadBatch(machine, *batches, Split::Validation, b);
      executor.run(Executor::Mode::Evaluate);
      Executor::Loss loss = executor.loss();
      total.sum += loss.sum;
      total.weight += loss.weight;
    }
    return total.sum / total.weight;
  }

  void save() {
    std::map<std::string, TensorView> tensors;
    for (int rank = 0; rank < machine.ranks(); ++rank)
      for (const Update &update : program.stages[rank].updates) {
        const Parameter &parameter = program.parameters[update.parameter];
        tensors[tensorName(parameter, update.layer)] = {
            "F32", parameter.shape, machine.at<char>(rank, update.master),
            4 * elementCount(parameter)};
      }
    writeSafetensors(options.save, tensors);
  }

  const Program &program;
  const Options &options;
  Report report;
  std::unique_ptr<Batches> batches;
  std::unique_ptr<Weights> weights;
  Machine machine;
  Executor executor;
  Optimizer optimizer;
  Progress progress;
  Profile::Table phases;
  std::chrono::steady_clock::time_point start;
  double stepSeconds = 0.0; // a moving mean
};

} // namespace

int threadCount(const Options &options) {
  return options.threads > 0 ? options.threads : availableCores();
}

std::unique_ptr<Weights> openWeights(const Program &program,
                                     const Options &options) {
  if (options.weights.empty())
    return nullptr;
  return std::make_unique<Weights>(options.weights, program);
}

void loadBatch(Machine &machine, const Batches &batches, Split split,
               int64_t batch) {
  const Program &program = machine.program();
  for (int rank = 0; rank < machine.ranks(); ++rank) {
    const Stage &r = program.stages[rank];
    for (int64_t m = 0; m < program.microbatches; ++m) {
      char *input = machine.at<char>(rank, r.inputData);
      char *target = machine.at<char>(rank, r.targetData);
      batches.fill(split, batch, m,
                   input ? input + m * program.input.bytes() : nullptr,
                   target ? target + m * program.target.bytes() : nullptr);
    }
  }
}

void train(const Executable &executable, const Options &options) {
  for (const std::string *path : {&options.save, &options.trace})
    if (!path->empty())
      checkWritable(*path);
  interrupted = 0;
  std::signal(SIGINT, onInterrupt);
  Training(executable, options).run();
}

int runTrainer(int argc, char **argv, const char *description,
               int64_t descriptionBytes, const RotaTask *tasks,
               const RotaKernel *kernels) {
  Options options;
  if (std::optional<int> code = parseOptions(argc, argv, options))
    return *code;
  auto complain = [](const std::string &message, int code) {
    fmt::print(stderr, "error: {}\n", message);
    return code;
  };
  // A file over a size limit is an error of write, as a full disk is.
  std::signal(SIGXFSZ, SIG_IGN);
  Program program;
  std::string error;
  if (!fromJson(description, descriptionBytes, program, error) ||
      !verify(program, error))
    return complain("the compiled program is broken: " + error, kExitRunFailed);
  try {
    Executable executable{&program, tasks, kernels};
    options.probe ? probe(executable, options) : train(executable, options);
    return kExitSuccess;
  } catch (const InputError &failure) {
    return complain(failure.what(), kExitBadInput);
  } catch (const std::exception &failure) {
    return complain(failure.what(), kExitRunFailed);
  }
}

} // namespace rota
