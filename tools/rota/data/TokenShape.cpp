// SPDX-License-Identifier: Apache-2.0
//
// Compiled with exceptions, since the reader of safetensors reports by them;
// they do not leave this file.
#include "tools/rota/data/TokenShape.h"

#include "runtime/Error.h"
#include "runtime/checkpoint/Safetensors.h"

#include <fmt/format.h>

namespace rota {

/// Sets `option` to the file's number, or says that the two differ.
static bool settle(int64_t &option, int64_t number, const char *flag,
                   const RunOptions &options, std::string &error) {
  if (option == 0)
    option = number;
  if (option == number)
    return true;
  error = fmt::format("{}: expected {} {} as given, got {}", options.tokens,
                      flag, option, number);
  return false;
}

bool readTokenShape(RunOptions &options, std::string &error) {
  try {
    SafetensorsFile file(options.tokens);
    const auto &tensors = file.tensors();
    auto tokens = tensors.find("tokens"), inputs = tensors.find("inputs");
    bool isTokens = tokens != tensors.end();
    if (!isTokens && inputs == tensors.end()) {
      error = fmt::format("{}: expected a tensor 'tokens', or 'inputs' and "
                          "'targets', got neither",
                          options.tokens);
      return false;
    }
    const std::vector<int64_t> &shape =
        (isTokens ? tokens : inputs)->second.shape;
    if (shape.size() < 2 || shape[0] < 1 || shape[1] < (isTokens ? 2 : 1)) {
      error = fmt::format("{}: expected '{}' of shape {}, got {}",
                          options.tokens, isTokens ? "tokens" : "inputs",
                          isTokens ? "[batch, sequence + 1]"
                                   : "[batch, sequence, ...]",
                          shapeText(shape));
      return false;
    }
    int64_t rounds = options.compiler.accumulationSteps;
    if (shape[0] % (rounds * options.compiler.schedule.microbatches) != 0) {
      error = fmt::format(
          "{}: expected a batch that is a multiple of {}'microbatches', got {} "
          "and {}{}",
          options.tokens, rounds > 1 ? "'accumulate' * " : "", shape[0],
          rounds > 1 ? fmt::format("{} * ", rounds) : "",
          microbatchesText(options));
      return false;
    }
    return settle(options.batchSize, shape[0], "--batch-size", options,
                  error) &&
           settle(options.compiler.build.sequenceLength, shape[1] - isTokens,
                  "--sequence-length", options, error);
  } catch (const InputError &inputError) {
    error = inputError.what();
    return false;
  }
}

} // namespace rota
