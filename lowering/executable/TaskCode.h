// SPDX-License-Identifier: Apache-2.0
//
// The code of a task: its steps as calls of the runtime.
#ifndef ROTA_LOWERING_EXECUTABLE_TASKCODE_H
#define ROTA_LOWERING_EXECUTABLE_TASKCODE_H

#include "lowering/executable/Buffers.h"

namespace rota::lowering {

/// Writes tasks into a module of llvm ops.
class TaskWriter {
public:
  explicit TaskWriter(mlir::MLIRContext *context);

  /// Adds `void symbol(ptr context, ptr frame)` that runs the steps in order.
  void add(mlir::Location loc, llvm::StringRef symbol,
           const FunctionBuffers &buffers);

  /// The module; kernels are declared in it, not defined.
  mlir::OwningOpRef<mlir::ModuleOp> take() { return std::move(module); }

private:
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

} // namespace rota::lowering

#endif // ROTA_LOWERING_EXECUTABLE_TASKCODE_H
