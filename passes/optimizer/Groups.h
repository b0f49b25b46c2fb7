// SPDX-License-Identifier: Apache-2.0
//
// Groups of parameters with a learning rate and a weight decay of their own.
#ifndef ROTA_PASSES_OPTIMIZER_GROUPS_H
#define ROTA_PASSES_OPTIMIZER_GROUPS_H

#include "ir/rota/Rota.h"

#include <optional>

namespace mlir::rota {

/// The parameters with `pattern` in their name in checkpoints, in which words
/// in braces stand for numbers: "model.layers.{layer}.input_layernorm.weight".
struct ParameterGroup {
  std::string pattern;
  // Factors of the options of the run. A group with a decay decays whatever the
  // dimensions of its parameters are.
  std::optional<double> rate, decay;
};

class ParameterGroups {
public:
  /// Reads "PATTERN=KEY:VALUE,KEY:VALUE;PATTERN=...". Keys are `lr` and
  /// `decay`. A comma may stand for the semicolon. Returns nothing and an error
  /// where the text is wrong.
  static std::optional<ParameterGroups> read(StringRef text,
                                             std::string &error);

  /// The first group that has the parameter; null: none.
  const ParameterGroup *find(StringRef name) const;

  /// Emits an error, with the nearest names, for a pattern that is in the name
  /// of no parameter of the module.
  LogicalResult verifyMatches(ModuleOp module) const;

private:
  SmallVector<ParameterGroup> groups;
};

} // namespace mlir::rota

#endif // ROTA_PASSES_OPTIMIZER_GROUPS_H
