// SPDX-License-Identifier: Apache-2.0
//
// The command generate: given weights continue a prompt.
#include "runtime/Error.h"
#include "runtime/program/JsonText.h"
#include "runtime/train/Train.h"
#include "runtime/train/sample/SampleText.h"
#include "runtime/train/sample/Sampler.h"
#include "runtime/train/state/GivenWeights.h"
#include "runtime/train/step/PrepareFirstStep.h"

#include <cstdio>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace rota {

void generate(const Run &run) {
  const Options &options = run.options;
  if (!options.samples.isOn())
    throw InputError("'prompt-tokens': expected a token or more, got none");
  requirePrompt(*run.executable.program, options.samples);
  requireWeights(run);
  run.machine.run([&](Rank &rank) {
    prepareGpu(rank);
    Executor executor(rank, /*tracedRuns=*/0);
    GivenWeights weights = readGivenWeights(rank, run);
    bool isFirst = true, streams = rank.number() == 0 && !options.json;
    Sample sample{weights.step, options.samples.prompt, {}, {}};
    sample.tokens =
        Sampler(rank, executor, options.samples, options.seed)
            .run(weights.step.value_or(0), [&](int32_t token) {
              if (!streams)
                return;
              fmt::print("{}{}", std::exchange(isFirst, false) ? "" : ",",
                         token);
              std::fflush(stdout);
            });
    if (streams)
      fmt::print("\n");
    else if (rank.number() == 0)
      fmt::print("{}\n", jsonText(sampleJson(sample)));
    std::fflush(stdout);
  });
}

} // namespace rota
