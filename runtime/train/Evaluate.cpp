// SPDX-License-Identifier: Apache-2.0
//
// The command eval: the loss of given weights on data.
#include "runtime/Error.h"
#include "runtime/data/DataPaths.h"
#include "runtime/data/WholeBatches.h"
#include "runtime/program/JsonText.h"
#include "runtime/text/Text.h"
#include "runtime/train/Evaluation.h"
#include "runtime/train/Train.h"
#include "runtime/train/state/GivenWeights.h"
#include "runtime/train/step/PrepareFirstStep.h"

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

static void print(const Options &options, const GivenWeights &weights,
                  const Loss &total, int64_t batches) {
  double loss = total.main();
  auto tokens = static_cast<int64_t>(total.weight); // targets that count
  if (options.json) {
    nlohmann::ordered_json line = {{"event", "eval"},
                                   {"step", nullptr},
                                   {"loss", loss},
                                   {"perplexity", std::exp(loss)},
                                   {"batches", batches},
                                   {"tokens", tokens},
                                   {"weights", weights.source}};
    if (weights.step)
      line["step"] = *weights.step;
    fmt::print("{}\n", jsonText(line));
  } else {
    fmt::print("weights: {}\n{}loss {:.4f}, perplexity {:.4g}, on {} tokens\n",
               weights.source,
               weights.step ? fmt::format("step {}: ", *weights.step) : "",
               loss, std::exp(loss), grouped(tokens));
  }
  std::fflush(stdout);
}

void evaluate(const Run &run) {
  const Program &program = *run.executable.program;
  requireWeights(run);
  WholeBatches data = openData(program, run.options);
  ValidationOptions validation;
  validation.steps = data.batches();
  if (run.options.evalSteps > 0)
    validation.steps = std::min(run.options.evalSteps, data.batches());
  run.machine.run([&](Rank &rank) {
    prepareGpu(rank);
    Executor executor(rank, /*tracedRuns=*/0);
    GivenWeights weights = readGivenWeights(rank, run);
    // The first signal ends the process: it has nothing to save.
    std::optional<Loss> loss = Evaluation(rank, executor, validation, data)
                                   .run(weights.step.value_or(0));
    if (rank.number() == 0)
      print(run.options, weights, *loss, validation.steps);
  });
}

} // namespace rota
