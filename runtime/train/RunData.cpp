// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/RunData.h"
#include "runtime/Error.h"
#include "runtime/data/TokenBatches.h"
#include "runtime/text/Text.h"

#include <algorithm>
#include <fmt/format.h>

namespace rota {

/// Sequences of the runs of the timeline that a validation takes. Sequences
/// that do not count are those of tokens without a target; they change means of
/// observations. Throws InputError.
static int64_t validationSequences(const Program &program,
                                   const ValidationOptions &validation) {
  int64_t run = program.timelineSequences();
  bool takesParts = program.vocabulary > 0 && !hasMeans(program);
  if (!takesParts && validation.batchSize % run != 0)
    throw InputError(
        fmt::format("'eval-batch-size': expected a multiple of the {} of a "
                    "step for a model whose {}, got {}",
                    counted(run, "sequence"),
                    program.vocabulary > 0 ? "layers read means of observations"
                                           : "inputs are not tokens",
                    validation.batchSize));
  int64_t batch = runsOf(program, validation.batchSize) * run;
  int64_t sequences = 0;
  if (__builtin_mul_overflow(batch, validation.steps, &sequences))
    throw InputError(fmt::format(
        "'eval-steps': expected a validation of fewer than 2^63 sequences, got "
        "{} batches of {}",
        validation.steps, batch));
  return sequences;
}

/// Throws InputError unless a target of a validation counts. Most often the
/// first one does.
static void requireTarget(const Program &program, const Batches &batches,
                          int64_t sequences) {
  std::vector<int32_t> targets(static_cast<size_t>(program.target.elements()));
  Destination out{partOf(program.target.shape, {}, {}, {}),
                  reinterpret_cast<char *>(targets.data())};
  for (int64_t s = 0; s < sequences; s += program.input.shape[0]) {
    batches.fill(Split::Validation, s, {}, out);
    if (std::ranges::any_of(targets, [](int32_t t) { return t >= 0; }))
      return;
  }
  throw InputError(fmt::format(
      "expected a target that counts in the {} of a validation, got "
      "none (--eval-fraction 0 trains without one)",
      counted(sequences, "sequence")));
}

void requireData(bool takesTokens, const Options &options) {
  if (takesTokens && options.data.empty())
    throw InputError("expected --data with at least one file");
  for (const auto &[name, files] :
       {std::pair("--data", &options.data),
        std::pair("--eval-data", &options.validation.data)})
    if (!takesTokens && !files->empty())
      throw InputError(fmt::format("this model's inputs are not tokens: it "
                                   "trains on random inputs and takes no {}",
                                   name));
}

/// The data that `items` names, of which `fraction` validates.
static std::unique_ptr<Batches>
tokenBatches(const Program &program, const Options &options,
             const std::vector<std::string> &items, double fraction) {
  TokenBatchOptions tokens;
  tokens.type = options.tokenType;
  tokens.validationFraction = fraction;
  tokens.validationBatches = options.validation.steps;
  tokens.validationBatchSize = options.validation.batchSize;
  tokens.seed = static_cast<uint64_t>(options.seed);
  return std::make_unique<TokenBatches>(program, items, tokens);
}

RunData::RunData(const Program &program, const Options &options) {
  int64_t sequences = validationSequences(program, options.validation);
  requireData(program.vocabulary > 0, options);
  if (program.vocabulary == 0) {
    own = std::make_unique<NormalBatches>(program, options.seed);
    return;
  }
  const ValidationOptions &validation = options.validation;
  own = tokenBatches(program, options, options.data, validation.heldFraction());
  if (!validation.data.empty())
    held = tokenBatches(program, options, validation.data, 1.0);
  if (this->validation().hasValidation())
    requireTarget(program, this->validation(), sequences);
}

std::string RunData::describe() const {
  return own->describe() + (held ? ", " + held->describe() : "");
}

} // namespace rota
