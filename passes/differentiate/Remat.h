// SPDX-License-Identifier: Apache-2.0
//
// Rematerialization policies: which named values are saved for the backward.
#ifndef ROTA_PASSES_DIFFERENTIATE_REMAT_H
#define ROTA_PASSES_DIFFERENTIATE_REMAT_H

#include "mlir/IR/Diagnostics.h"

namespace mlir::rota {

/// Where a named value waits for the backward.
enum class RematDecision {
  Recompute, // nowhere: it is computed again
  Device     // in memory
};

/// The name of a layer's input, which is always kept: it is the activation.
inline constexpr llvm::StringLiteral layerInputName = "decoder_layer_input";

/// A decision for every name.
class RematPolicy {
public:
  /// Reads a policy's name or a table `name=remat|device,...`. `emitError` is
  /// asked for the error when the text is neither.
  static FailureOr<RematPolicy>
  parse(StringRef text, function_ref<InFlightDiagnostic()> emitError);

  /// Whether every value that the backward reads is saved, named or not.
  bool savesEverything() const { return everything; }
  /// The decision for a value of that name. A name that the table does not
  /// have is recomputed.
  RematDecision decide(StringRef name) const;
  /// The names of a table that the user wrote, which must all mean something.
  SmallVector<StringRef> requiredNames() const;

private:
  const RematDecision *find(StringRef name) const;

  bool everything = false;
  bool isCustom = false;
  SmallVector<std::pair<std::string, RematDecision>> decisions;
};

} // namespace mlir::rota

#endif // ROTA_PASSES_DIFFERENTIATE_REMAT_H
