// SPDX-License-Identifier: Apache-2.0
//
// Patterns with which users name parameters.
#ifndef ROTA_IR_ROTA_MODEL_PARAMETERNAMES_H
#define ROTA_IR_ROTA_MODEL_PARAMETERNAMES_H

#include "mlir/IR/BuiltinOps.h"

#include <string>

namespace mlir::rota {

/// Whether `pattern` is a part of a parameter's name. A number at its begin or
/// end is a whole one: "layers.1" is no part of "layers.10.weight".
bool isInName(StringRef pattern, StringRef name);

/// Emits an error about a pattern of `option` that is in the name of no
/// parameter of `module`, with the nearest names.
InFlightDiagnostic emitNoMatch(ModuleOp module, StringRef option,
                               StringRef pattern);

} // namespace mlir::rota

#endif // ROTA_IR_ROTA_MODEL_PARAMETERNAMES_H
