// SPDX-License-Identifier: Apache-2.0
//
// Which values the layers of a differentiated model save.
#ifndef ROTA_PASSES_DIFFERENTIATE_RESIDUALS_H
#define ROTA_PASSES_DIFFERENTIATE_RESIDUALS_H

#include "ir/rota/Rota.h"

#include <string>
#include <vector>

namespace mlir::rota {

/// A value that a kind of layer keeps for its backward.
struct LayerResidual {
  std::string layer; // the kind's name
  std::string name;  // names in the model as built, or the type of the value
  int64_t bytes = 0; // of this rank, for one layer and microbatch
  bool isOffloaded = false;
};

/// The residuals of all kinds of layers, by the names of the model as built.
struct ResidualSummary {
  std::vector<std::string> kept, offloaded; // each name once
  int unnamed = 0;
  std::vector<LayerResidual> values; // all of them, by kind of layer
};

/// Reads the residuals of `module` at any level from `differentiate` on.
ResidualSummary summarizeResiduals(ModuleOp module);

} // namespace mlir::rota

#endif // ROTA_PASSES_DIFFERENTIATE_RESIDUALS_H
