// SPDX-License-Identifier: Apache-2.0
//
// The kernels and products that a task asks its device for.
#ifndef ROTA_LOWERING_EXECUTABLE_TASKLAUNCHES_H
#define ROTA_LOWERING_EXECUTABLE_TASKLAUNCHES_H

#include "lowering/kernels/KernelPlan.h"

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
  /// The symbol of the kernel that does the launches of several tasks at once,
  /// if there is one (RotaGpuLaunch::table).
  std::string table = {};
};

/// In the order in which a task asks for them.
using TaskLaunches = std::vector<TaskLaunch>;

/// Appends the launches of a step that carries out `ops`; accumulate[i] says
/// whether it adds to result i of all their results. An op without results adds
/// to its step's one.
void addLaunches(llvm::ArrayRef<mlir::Operation *> ops, const TaskStep &step,
                 llvm::ArrayRef<bool> accumulate, const KernelLibrary &library,
                 TaskLaunches &launches);

/// Appends the launch of `count` sums of one form.
void addSumLaunch(const KernelCall &call, const SummedRows &sum, unsigned count,
                  TaskLaunches &launches);

/// "rms_norm" of the symbol "kernel_rms_norm_3".
std::string kernelName(llvm::StringRef symbol);

} // namespace rota::lowering

#endif // ROTA_LOWERING_EXECUTABLE_TASKLAUNCHES_H
