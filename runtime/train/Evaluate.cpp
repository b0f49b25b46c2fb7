// SPDX-License-Identifier: Apache-2.0
//
// The command eval: the loss of given weights on data.
#include "runtime/Error.h"
#include "runtime/data/DataPaths.h"
#include "runtime/data/WholeBatches.h"
#include "runtime/program/Text.h"
#include "runtime/train/Evaluation.h"
#include "runtime/train/Train.h"
#include "runtime/train/state/Initialize.h"
#include "runtime/train/state/Resume.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace rota {

static WholeBatches openData(const Program &program, const Options &options) {
  if (program.vocabulary == 0)
    throw InputError("this model's inputs are not tokens: there is no data to "
                     "evaluate it on");
  if (options.data.empty())
    throw InputError("expected --data with at least one file");
  std::vector<std::string> files;
  for (const SourcePaths &source : findSources(options.data)) {
    if (source.files.empty() || !files.empty())
      throw InputError("expected files or folders without weights, whose "
                       "tokens are read once; got '" +
                       source.name + "'");
    files = source.files;
  }
  return {program, Tokens(files, options.tokenType,
                          TokenBounds{program.vocabulary, program.classes})};
}

/// Reads the weights; returns the step of the checkpoint that they are of, if
/// they are.
static std::optional<int64_t> readWeights(Rank &rank, const Run &run) {
  std::optional<int64_t> step;
  if (const std::string &path = run.options.checkpoint; !path.empty()) {
    ResumeOptions from;
    from.from = path;
    step = resume(rank, {from, "", {}, StateExtent::Masters})->state.step;
  } else {
    initializeMasters(rank, run.options.seed, run.weights);
  }
  completeInitialization(rank);
  return step;
}

static void print(const Options &options, std::optional<int64_t> step,
                  double loss, int64_t batches, int64_t tokens) {
  if (options.json) {
    nlohmann::ordered_json line = {
        {"event", "eval"},    {"step", nullptr},
        {"loss", loss},       {"perplexity", std::exp(loss)},
        {"batches", batches}, {"tokens", tokens}};
    if (step)
      line["step"] = *step;
    fmt::print("{}\n", line.dump());
  } else {
    fmt::print("{}loss {:.4f}, perplexity {:.4g}, on {} tokens\n",
               step ? fmt::format("step {}: ", *step) : "", loss,
               std::exp(loss), grouped(tokens));
  }
  std::fflush(stdout);
}

void evaluate(const Run &run) {
  const Program &program = *run.executable.program;
  if (run.options.checkpoint.empty() && !run.weights)
    throw InputError("expected --checkpoint or --weights");
  WholeBatches data = openData(program, run.options);
  ValidationOptions validation;
  validation.steps = data.batches();
  if (run.options.evalSteps > 0)
    validation.steps = std::min(run.options.evalSteps, data.batches());
  int64_t tokens = data.targets(validation.steps);
  run.machine.run([&](Rank &rank) {
    Executor executor(rank, /*tracedRuns=*/0);
    std::optional<int64_t> step = readWeights(rank, run);
    double loss =
        Evaluation(rank, executor, validation, data).run(step.value_or(0));
    if (rank.number() == 0)
      print(run.options, step, loss, validation.steps, tokens);
  });
}

} // namespace rota
