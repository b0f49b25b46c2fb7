// SPDX-License-Identifier: Apache-2.0
//
// From a model to a native trainer: the whole compiler, in order.
#ifndef ROTA_TOOLS_COMPILER_COMPILE_H
#define ROTA_TOOLS_COMPILER_COMPILE_H

#include "lowering/executable/TaskLaunches.h"
#include "lowering/memory/Layout.h"
#include "lowering/report/Transfers.h"
#include "passes/differentiate/Residuals.h"
#include "runtime/Error.h"
#include "tools/compiler/CompilerOptions.h"
#include "tools/compiler/Level.h"

#include <string>

namespace rota {

/// The output of a compilation.
struct CompilerOutput {
  Level level = Level::Executable;
  std::string path;       // "-": standard output, for text
  bool transfers = false; // a table of them on standard error too
};

/// Compiles `model`, which is used up, as far as the level of `output`, and
/// writes that. Errors are diagnostics of the model's context; nothing is
/// written then.
ExitCode compileModel(mlir::rota::BuiltModel &model,
                      const CompilerOptions &options,
                      const CompilerOutput &output);

/// The program that the trainer would hold, without native code.
struct Plan {
  Program program;
  FunctionCosts costs; // costs of the tasks that the program calls
  pipe::Timeline timeline;
  std::vector<TransferReport> transfers;
  std::vector<lowering::TaskLaunches> launches; // by task, on a GPU
  mlir::rota::ResidualSummary residuals;
  memory::ModelLayout layout; // layout that `program` was planned from
  memory::ChunkTable chunks;
  mlir::rota::Machine machine; // as a rank finds it
  /// Program::flopsPerToken if attention computed all pairs of positions.
  double fullFlopsPerToken = 0;
};

/// Makes the plan of `model`, which is used up.
ExitCode planModel(mlir::rota::BuiltModel &model,
                   const CompilerOptions &options, Plan &plan);

/// Makes the same plan in a fraction of the time: without verification, drawn
/// timeline and transfers.
ExitCode estimateModel(mlir::rota::BuiltModel &model,
                       const CompilerOptions &options, Plan &plan);

} // namespace rota

#endif // ROTA_TOOLS_COMPILER_COMPILE_H
