// SPDX-License-Identifier: Apache-2.0
//
// Object code that earlier compilations made, for those with equal functions:
// the same model under another schedule, with other options of the trainer, or
// once more. Another division of a model, too, has many of its kernels.
#ifndef ROTA_LOWERING_EXECUTABLE_CODECACHE_H
#define ROTA_LOWERING_EXECUTABLE_CODECACHE_H

#include "mlir/IR/Operation.h"

#include <optional>
#include <string>

namespace llvm {
class TargetMachine;
} // namespace llvm

namespace rota::lowering {

/// A hash of the text of some ops, in hexadecimal digits.
std::string digestOf(llvm::ArrayRef<mlir::Operation *> ops);

/// The object file that `make` returns for `machine`. It is kept in the folder
/// that the variable ROTA_CODE_CACHE names, and found there by later calls with
/// the same `source`, on which it depends besides the machine and this program.
/// Each file's name is a hash of these, so a file that is there is right, and a
/// folder may be shared and removed at any time. Without a `source` or that
/// variable nothing is found or kept, nor where the folder cannot be written.
llvm::FailureOr<std::string>
codeOf(const std::optional<std::string> &source,
       const llvm::TargetMachine &machine,
       llvm::function_ref<llvm::FailureOr<std::string>()> make);

} // namespace rota::lowering

#endif // ROTA_LOWERING_EXECUTABLE_CODECACHE_H
