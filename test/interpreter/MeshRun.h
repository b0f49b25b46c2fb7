// SPDX-License-Identifier: Apache-2.0
//
// A partitioned function on all ranks of its mesh: each op is evaluated for
// every rank before the next, and collective ops exchange the ranks' values.
#ifndef ROTA_TEST_INTERPRETER_MESHRUN_H
#define ROTA_TEST_INTERPRETER_MESHRUN_H

#include "test/interpreter/Interpreter.h"
#include "test/interpreter/Parts.h"

namespace rota::interpreter {

/// Runs a function of a module with a mesh. `arguments` are the ranks' parts,
/// as the function's types say; `environments` what parameters mean on each
/// rank. Returns the ranks' results. Emits an error and fails as `runFunction`
/// does.
llvm::FailureOr<llvm::SmallVector<Parts>>
runOnMesh(mlir::func::FuncOp function, llvm::ArrayRef<Parts> arguments,
          llvm::MutableArrayRef<Environment> environments,
          const Options &options = {});

/// runOnMesh for a function that uses no parameters.
llvm::FailureOr<llvm::SmallVector<Parts>>
runOnMesh(mlir::func::FuncOp function, llvm::ArrayRef<Parts> arguments,
          const Options &options = {});

/// Runs a collective op on the frames of all ranks, in the mesh's order.
/// Returns false when `op` is no collective.
bool runCollective(mlir::Operation *op, mlir::rota::MeshAttr mesh,
                   llvm::MutableArrayRef<Frame> ranks);

} // namespace rota::interpreter

#endif // ROTA_TEST_INTERPRETER_MESHRUN_H
