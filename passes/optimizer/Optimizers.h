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
    // Code that is compiled with 0 has no part that reads the option, and its
    // trainer takes no other value.
    bool isFixedAtZero = false;
  };

  llvm::StringLiteral name;
  llvm::ArrayRef<Option> options;
  /// Options of build-updates that belong to this optimizer, not to all.
  llvm::ArrayRef<llvm::StringLiteral> settings;
  bool isNesterov;    // by default
  bool knowsMatrices; // UpdateForm::rows is set for matrices of layers
  /// Builds an update; returns the parameter's new value.
  Value (*build)(UpdateBuilder &builder);

  /// Null when there is no option of that name.
  const Option *findOption(StringRef name) const;
};

extern const OptimizerSpec adamW, sgd, muon;
/// The optimizer of a run that names none.
inline const OptimizerSpec &defaultOptimizer = adamW;

/// An update of AdamW, for the parameters that an optimizer leaves to it.
Value buildAdamW(UpdateBuilder &builder);

/// The update of a bias of choices, whatever the optimizer (RouterBias.cpp).
Value buildRouterBias(UpdateBuilder &builder);

/// Options that several optimizers have.
inline constexpr double kBelowOne = 0.999999999, kAny = 1e300;
/// A little above the least normal f32. With an epsilon of 0, which PyTorch
/// takes, the step of an element that never had a gradient is 0 / 0.
inline constexpr double kAboveZero = 1.2e-38;
inline constexpr llvm::StringLiteral kWeightDecay = "weight-decay",
                                     kMomentum = "momentum";
inline constexpr OptimizerSpec::Option
    kBeta1 = {"beta1", 0.9, 0.0, kBelowOne, "Decay of the first moment"},
    kBeta2 = {"beta2", 0.95, 0.0, kBelowOne, "Decay of the second moment"},
    kEpsilon = {"epsilon", 1e-8, kAboveZero, kAny, "Added to the root"},
    kDecay = {kWeightDecay, 0.1, 0.0, kAny,
              "Decay of tensors of two or more dimensions"};

/// All optimizers, the default first.
llvm::ArrayRef<const OptimizerSpec *> allOptimizers();
/// Null when there is no optimizer of that name.
const OptimizerSpec *findOptimizer(StringRef name);
/// "adamw, ..." for help and messages.
std::string optimizerNames();

/// The names of the optimizers that have an option or setting; empty where all
/// have it or none has.
SmallVector<StringRef> optimizersWith(StringRef option);

/// Reads "beta1=0.8,momentum=0.9": values of the optimizer's options by name.
/// Returns nothing and an error where one is unknown or out of bounds.
std::optional<llvm::StringMap<double>>
readOptionValues(const OptimizerSpec &optimizer, StringRef text,
                 std::string &error);

} // namespace mlir::rota

#endif // ROTA_PASSES_OPTIMIZER_OPTIMIZERS_H
