// SPDX-License-Identifier: Apache-2.0
#include "tools/rota/InitialWeights.h"

#include "runtime/program/WeightFiles.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace rota {

bool findInitialWeights(Command verb, const mlir::rota::BuiltModel &model,
                        RunOptions &options) {
  if (!options.weights.empty() || !options.checkpoint.empty())
    return true;
  bool isRead =
      model.quantization.empty() ||
      llvm::is_contained(kQuantizations, llvm::StringRef(model.quantization));
  if (!isRead && !model.weights.empty()) {
    fmt::print(stderr,
               "error: '{}': expected weights in F32, F16, BF16, or of the "
               "methods {}, got those that 'quantization_config' "
               "calls {}; '--weights' names other "
               "weights, and the configuration in a folder of its own begins "
               "with random ones\n",
               model.weights, fmt::join(kQuantizations, " and "),
               model.quantization);
    return false;
  }
  options.weights = model.weights;
  bool isNeeded = verb == Command::Eval || verb == Command::Generate;
  if (!isNeeded || !options.weights.empty())
    return true;
  fmt::print(stderr,
             "error: '{}': expected weights beside the model ({}); '--weights' "
             "names weights elsewhere, '--checkpoint' those of a run\n",
             options.compiler.model, fmt::join(kWeightFiles, " or "));
  return false;
}

} // namespace rota
