// SPDX-License-Identifier: Apache-2.0
//
// The kernels and products that a task asks its device for.
#ifndef ROTA_LOWERING_EXECUTABLE_TASKLAUNCHES_H
#define ROTA_LOWERING_EXECUTABLE_TASKLAUNCHES_H

#include "mlir/IR/Operation.h"

#include <string>
#include <vector>

namespace rota::lowering {

struct TaskStep;

/// One of them.
struct TaskLaunch {
  std::string kernel; // "rms_norm": a symbol without its number; or gemmName
  /// Whole operands, results and temporaries of the launch, each once; twice
  /// where it adds to what a result's buffer holds.
  double bytes = 0;
  /// By the op's cost. Those of an op with several kernels belong to the kernel
  /// that has the most bytes.
  double operations = 0;
};

/// In the order in which a task asks for them.
using TaskLaunches = std::vector<TaskLaunch>;

/// Appends the launches of a step that carries out `op`; accumulate[i] says
/// whether it adds to result i. An op without results adds to its step's one.
void addLaunches(mlir::Operation *op, const TaskStep &step,
                 llvm::ArrayRef<bool> accumulate, TaskLaunches &launches);

} // namespace rota::lowering

#endif // ROTA_LOWERING_EXECUTABLE_TASKLAUNCHES_H
