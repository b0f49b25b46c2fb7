// SPDX-License-Identifier: Apache-2.0
//
// Sums over rows into gradients, which wait for the end of their task on a
// device that does many of one form at once. Nothing else in the task reads a
// gradient.
#ifndef ROTA_LOWERING_EXECUTABLE_DEFERREDSUMS_H
#define ROTA_LOWERING_EXECUTABLE_DEFERREDSUMS_H

#include "lowering/executable/Buffers.h"

#include "llvm/ADT/DenseSet.h"

namespace rota::lowering {

class DeferredSums {
public:
  explicit DeferredSums(KernelLibrary &library) : library(library) {}

  /// The step's temporaries that sums read later, by number: their bytes must
  /// stay until the end of the task.
  llvm::SmallDenseSet<unsigned> keptBy(const TaskStep &step) const;
  /// Moves these sums out of a step that has its addresses.
  void takeFrom(TaskStep &step);
  /// Adds them to the task, a call for those of one form. Sums of one gradient
  /// keep their order.
  llvm::LogicalResult addTo(FunctionBuffers &task);

private:
  struct Sum {
    SummedRows form;
    mlir::Location loc;
    BufferAddress from, to;
  };
  bool isDeferred(const KernelCall &call) const {
    return library.getTarget().emitSums && call.sum && call.sum->accumulate;
  }

  KernelLibrary &library;
  std::vector<Sum> sums;
};

} // namespace rota::lowering

#endif // ROTA_LOWERING_EXECUTABLE_DEFERREDSUMS_H
