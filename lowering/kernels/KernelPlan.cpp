// SPDX-License-Identifier: Apache-2.0
//
// Plans an op with its emitter.
#include "lowering/kernels/KernelPlan.h"

using namespace mlir;

namespace rota::lowering {

FailureOr<KernelPlan> planCall(FailureOr<std::string> symbol, int64_t rows,
                               int64_t grain, unsigned operands) {
  if (failed(symbol))
    return failure();
  KernelCall call{*symbol, rows, grain, {}};
  for (unsigned i = 0; i < operands; ++i)
    call.arguments.push_back({KernelArgument::Kind::Operand, i});
  call.arguments.push_back({KernelArgument::Kind::Result, 0});
  return KernelPlan{{std::move(call)}, {}};
}

bool hasKernels(Operation *op, const KernelLibrary &library) {
  using mlir::rota::TaskForm;
  auto inTask = dyn_cast<mlir::rota::TaskOpInterface>(op);
  if (!inTask)
    return false;
  return inTask.getTaskForm() == TaskForm::Kernels ||
         (inTask.getTaskForm() == TaskForm::Product &&
          library.getEmitters().lookup(op));
}

static FailureOr<KernelPlan>
runEmitter(Operation *op, ArrayRef<bool> accumulate, KernelLibrary &library) {
  KernelEmitters::Emitter emitter = library.getEmitters().lookup(op);
  if (!emitter)
    return op->emitOpError("expected an op that has a kernel");
  auto inTask = cast<mlir::rota::TaskOpInterface>(op);
  for (auto [result, adds] : llvm::enumerate(accumulate))
    if (adds && !inTask.canAccumulate(result))
      return op->emitOpError("expected an op that can add into its result");
  return emitter(op, accumulate, library);
}

/// Bytes that `op` reads and writes when each value goes once to memory and
/// back.
static double traffic(Operation *op) {
  if (auto costed = dyn_cast<mlir::rota::CostOpInterface>(op))
    return costed.getCost().bytes();
  double bytes = 0;
  auto add = [&](Type type) {
    auto tensor = cast<RankedTensorType>(type);
    bytes += tensor.getNumElements() * tensor.getElementTypeBitWidth() / 8.0;
  };
  llvm::for_each(op->getOperandTypes(), add);
  llvm::for_each(op->getResultTypes(), add);
  return bytes;
}

FailureOr<KernelPlan> planKernels(Operation *op, ArrayRef<bool> accumulate,
                                  KernelLibrary &library) {
  FailureOr<KernelPlan> plan = runEmitter(op, accumulate, library);
  // The first call does the work; calls after it combine what its blocks left.
  if (succeeded(plan) && !plan->calls.empty()) {
    const KernelCall &call = plan->calls.front();
    library.setRowBytes(call.symbol, int64_t(traffic(op) / double(call.rows)));
  }
  return plan;
}

} // namespace rota::lowering
