// SPDX-License-Identifier: Apache-2.0
//
// From object files to a native trainer, with a compiler driver found on this
// machine.
#ifndef ROTA_LOWERING_EXECUTABLE_LINK_H
#define ROTA_LOWERING_EXECUTABLE_LINK_H

#include "lowering/executable/KernelObjects.h"

#include "mlir/IR/Location.h"
#include "llvm/Support/LogicalResult.h"
#include <string>

namespace rota::lowering {

struct LinkOptions {
  /// A compiler driver by name or path; empty: the first that is there of
  /// clang++-22, clang++, g++ and c++.
  std::string linker;
  /// The trainer runs once, here: it loads the runtime of this installation.
  bool runsHere = false;
  /// NVIDIA's assembler, as findPtxas of Ptxas.h takes it.
  std::string ptxas;
};

/// Links the bytes of object files with the runtime into the executable
/// `output`, and defines `aliases`. The runtime is librota_runtime.a, or the
/// shared one beside it, in
/// ../lib as seen from the running program. runtime/files/WriteFile.h writes
/// the file. Errors name the missing tool, library or path.
llvm::LogicalResult linkTrainer(mlir::Location loc,
                                llvm::ArrayRef<llvm::StringRef> objects,
                                llvm::ArrayRef<Alias> aliases,
                                llvm::StringRef output,
                                const LinkOptions &options);

} // namespace rota::lowering

#endif // ROTA_LOWERING_EXECUTABLE_LINK_H
