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

/// An object file in the folder that the variable ROTA_CODE_CACHE names. Its
/// name is a hash of all that its bytes depend on, this program included, so a
/// file that is there is right, and a folder may be shared and removed at any
/// time. Without that variable nothing is found or kept.
class CodeCache {
public:
  /// For code that `machine` makes of `source`. Where that has no description,
  /// nothing is found or kept.
  CodeCache(const std::optional<std::string> &source,
            const llvm::TargetMachine &machine);

  std::optional<std::string> find() const;
  /// A folder that cannot be written keeps nothing.
  void keep(llvm::StringRef object) const;
  /// What is found or, after it is kept, what `make` returns.
  llvm::FailureOr<std::string>
  findOrMake(llvm::function_ref<llvm::FailureOr<std::string>()> make) const;

private:
  std::string path; // empty: no cache
};

} // namespace rota::lowering

#endif // ROTA_LOWERING_EXECUTABLE_CODECACHE_H
