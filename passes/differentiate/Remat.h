// SPDX-License-Identifier: Apache-2.0
//
// Rematerialization policies: the named values that are saved for the backward.
#ifndef ROTA_PASSES_DIFFERENTIATE_REMAT_H
#define ROTA_PASSES_DIFFERENTIATE_REMAT_H

#include "mlir/IR/Diagnostics.h"

namespace mlir::rota {

/// The place where a named value waits for the backward. For a value with
/// several names the last of their decisions counts.
enum class RematDecision {
  Recompute, // not kept: it is computed again
  Offload,   // in the host's memory
  Device     // in the device's memory
};

/// The name of a layer's input, which is always kept: it is the activation.
inline constexpr llvm::StringLiteral layerInputName = "decoder_layer_input";

/// Whether `name` is one of those that policies of the field speak of, whatever
/// model has such a value.
bool isKnownValueName(StringRef name);

/// The policies that have a name, from the one that keeps everything to the one
/// that keeps nothing.
SmallVector<StringRef> policyNames();

/// Whether `text` is policies of single stages or chunks, for `assign-remat`.
inline bool isRematList(StringRef text) {
  return text.find_first_of(":;") != StringRef::npos;
}

/// A decision for every name.
class RematPolicy {
public:
  /// Reads `POLICY`, a table `name=remat|device|offload,...`, or a policy with
  /// changes `POLICY,name=...`. Any other text is an error, as is offloading a
  /// value that the policy rematerializes.
  static FailureOr<RematPolicy>
  parse(StringRef text, function_ref<InFlightDiagnostic()> emitError);

  /// The decision that the policy has for a value of that name, if any.
  std::optional<RematDecision> decide(StringRef name) const;
  /// The decision for values of other names and of none: all are kept, or none.
  RematDecision decideOthers() const {
    return everything ? RematDecision::Device : RematDecision::Recompute;
  }
  /// The names of a table that the user wrote, which must all mean something.
  ArrayRef<std::string> writtenNames() const { return written; }

private:
  bool readPolicy(StringRef name);
  LogicalResult readEntry(StringRef entry, StringRef base,
                          function_ref<InFlightDiagnostic()> emitError);
  void set(StringRef name, RematDecision decision);

  bool everything = false;
  SmallVector<std::pair<std::string, RematDecision>> decisions;
  SmallVector<std::string> written;
};

} // namespace mlir::rota

#endif // ROTA_PASSES_DIFFERENTIATE_REMAT_H
