// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/RunData.h"
#include "runtime/Error.h"
#include "runtime/data/TokenBatches.h"

#include <fmt/format.h>

namespace rota {

/// Sequences that do not count are those of tokens without a target, and change
/// the auxiliary losses.
static void checkValidation(const Program &program, int64_t batchSize) {
  int64_t run = program.timelineSequences();
  if ((program.vocabulary > 0 && program.auxiliaryLosses.empty()) ||
      batchSize % run == 0)
    return;
  throw InputError(fmt::format(
      "'eval-batch-size': expected a multiple of the {} sequences of a "
      "step for a model {}, got {}",
      run,
      program.vocabulary > 0 ? "with auxiliary losses"
                             : "whose inputs are not tokens",
      batchSize));
}

static std::unique_ptr<Batches> normalBatches(const Program &program,
                                              const Options &options) {
  for (const auto &[name, files] :
       {std::pair("--data", &options.data),
        std::pair("--eval-data", &options.validation.data)})
    if (!files->empty())
      throw InputError(fmt::format("this model's inputs are not tokens: it "
                                   "trains on random inputs and takes no {}",
                                   name));
  return std::make_unique<NormalBatches>(program, options.seed);
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
  checkValidation(program, options.validation.batchSize);
  if (program.vocabulary == 0) {
    own = normalBatches(program, options);
    return;
  }
  const ValidationOptions &validation = options.validation;
  own = tokenBatches(program, options, options.data, validation.heldFraction());
  if (!validation.data.empty())
    held = tokenBatches(program, options, validation.data, 1.0);
}

std::string RunData::describe() const {
  return own->describe() + (held ? ", " + held->describe() : "");
}

} // namespace rota
