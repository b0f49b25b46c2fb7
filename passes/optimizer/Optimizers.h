// SPDX-License-Identifier: Apache-2.0
//
// The optimizers by name. Each is a file that describes one and a line in
// Optimizers.cpp.
#ifndef ROTA_PASSES_OPTIMIZER_OPTIMIZERS_H
#define ROTA_PASSES_OPTIMIZER_OPTIMIZERS_H

#include "passes/optimizer/UpdateBuilder.h"

namespace mlir::rota {

struct OptimizerSpec {
  /// A number that the user may give to the trainer.
  struct Option {
    llvm::StringLiteral name; // the long flag without dashes
    double value;             // by default
    double least, most;
    llvm::StringLiteral help;
  };

  llvm::StringLiteral name;
  llvm::ArrayRef<Option> options;
  /// Builds an update; returns the parameter's new value.
  Value (*build)(UpdateBuilder &builder);
};

extern const OptimizerSpec adamW;
/// The optimizer of a run.
inline const OptimizerSpec &defaultOptimizer = adamW;

/// Null when there is no optimizer of that name.
const OptimizerSpec *findOptimizer(StringRef name);
/// "adamw, ..." for help and messages.
std::string optimizerNames();

} // namespace mlir::rota

#endif // ROTA_PASSES_OPTIMIZER_OPTIMIZERS_H
