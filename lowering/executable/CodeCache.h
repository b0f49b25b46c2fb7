// SPDX-License-Identifier: Apache-2.0
//
// Object code that earlier compilations made, for those with equal functions:
// the same model under another schedule, with other options of the trainer, or
// once more.
#ifndef ROTA_LOWERING_EXECUTABLE_CODECACHE_H
#define ROTA_LOWERING_EXECUTABLE_CODECACHE_H

#include "mlir/IR/BuiltinOps.h"

#include <memory>
#include <optional>
#include <string>

namespace llvm {
class MemoryBuffer;
class TargetMachine;
} // namespace llvm

namespace rota::lowering {

/// The object code of some modules in the folder that the variable
/// ROTA_CODE_CACHE names. Without that variable nothing is found or kept. Each
/// file's name is a hash of all that its bytes depend on, this program
/// included, so a file that is there is right, and a folder may be shared and
/// removed at any time.
class CodeCache {
public:
  /// For code that `machine` makes of `modules`, with other options in
  /// `options`. Without a description of these, nothing is found or kept.
  CodeCache(llvm::ArrayRef<mlir::ModuleOp> modules,
            const llvm::TargetMachine &machine,
            const std::optional<std::string> &options);

  /// The object file; null where there is none.
  std::unique_ptr<llvm::MemoryBuffer> find() const;
  /// Keeps the object file. A folder that cannot be written keeps nothing.
  void keep(llvm::StringRef object) const;

private:
  std::string path; // empty: no cache
};

} // namespace rota::lowering

#endif // ROTA_LOWERING_EXECUTABLE_CODECACHE_H
