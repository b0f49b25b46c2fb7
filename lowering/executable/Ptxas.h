// SPDX-License-Identifier: Apache-2.0
//
// From PTX to the code of one GPU with NVIDIA's assembler, where it is there.
#ifndef ROTA_LOWERING_EXECUTABLE_PTXAS_H
#define ROTA_LOWERING_EXECUTABLE_PTXAS_H

#include "lowering/executable/RunTool.h"
#include "mlir/IR/Location.h"
#include "llvm/Support/LogicalResult.h"
#include <memory>

namespace rota::lowering {

/// The name that stands for no assembler.
inline constexpr const char *kNoPtxas = "none";

/// The path of the assembler. `name` is one, a program of $PATH, or `none`;
/// empty: ptxas of $PATH, else that of $CUDA_HOME or /usr/local/cuda. An empty
/// path where there is none; an error at `loc` where a named one is not there.
llvm::FailureOr<std::string> findPtxas(mlir::Location loc,
                                       llvm::StringRef name);

/// A run of ptxas. Several run at once.
class PtxasRun {
public:
  /// Starts to assemble PTX for a chip, with all files in memory. Errors are
  /// at `loc`.
  static llvm::FailureOr<std::unique_ptr<PtxasRun>> start(mlir::Location loc,
                                                          llvm::StringRef ptxas,
                                                          llvm::StringRef chip,
                                                          llvm::StringRef text);
  /// Ends a run whose result is not used.
  ~PtxasRun();

  /// Waits for the cubin. An error has the first one of ptxas.
  llvm::FailureOr<std::string> finish();

private:
  PtxasRun(mlir::Location loc, llvm::StringRef ptxas, llvm::StringRef chip)
      : loc(loc), ptxas(ptxas), chip(chip), input("rota-ptx", inputError),
        output("rota-cubin", outputError),
        messages("rota-ptxas-messages", messagesError) {}

  mlir::Location loc;
  std::string ptxas, chip;
  std::error_code inputError, outputError, messagesError;
  MemoryFile input, output, messages;
  pid_t process = -1;
};

} // namespace rota::lowering

#endif // ROTA_LOWERING_EXECUTABLE_PTXAS_H
