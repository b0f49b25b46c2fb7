// SPDX-License-Identifier: Apache-2.0
//
// Rejects what is illegal once kernels are formed. Labels L1..L3 are those of
// the pass's description.
#include "lowering/kernels/Passes.h"

namespace rota::lowering {
#define GEN_PASS_DEF_VERIFYLOWERED
#include "lowering/kernels/KernelPasses.h.inc"

using namespace mlir;
using namespace mlir::rota;

/// L1: `op` may stand in a task.
static bool isLegal(Operation *op) {
  if (auto constant = dyn_cast<arith::ConstantOp>(op))
    return isa<DenseElementsAttr>(constant.getValue());
  return isa<TaskOpInterface, func::ReturnOp>(op);
}

static LogicalResult verifyLegal(Operation *op) {
  if (isLegal(op))
    return success();
  auto diagnostic = op->emitOpError();
  if (isa<DecomposableOpInterface>(op))
    return diagnostic << "expected to be decomposed before kernels are formed";
  if (isa<NameOp>(op))
    return diagnostic << "expected no names once kernels are formed";
  return diagnostic << "expected to be in a kernel";
}

/// L2: no value that `op` defines is of f64.
static LogicalResult verifyTypes(Operation *op, TypeRange types) {
  for (Type type : types)
    if (getElementTypeOrSelf(type).isF64())
      return op->emitOpError("expected f32, bf16 or i32 values, got ") << type;
  return success();
}

static LogicalResult verifyFunction(func::FuncOp function) {
  if (failed(verifyTypes(function, function.getArgumentTypes())))
    return failure();
  for (Block &block : function.getBody())
    for (Operation &op : block)
      if (failed(verifyLegal(&op)) ||
          failed(verifyTypes(&op, op.getResultTypes())))
        return failure();
  return success();
}

/// L3: each kernel is launched.
static LogicalResult verifyKernels(ModuleOp module) {
  llvm::DenseSet<StringAttr> launched;
  module.walk([&](LaunchOp launch) {
    launched.insert(launch.getKernelAttr().getAttr());
  });
  for (auto kernel : module.getOps<KernelOp>())
    if (!launched.contains(kernel.getSymNameAttr()))
      return kernel.emitOpError("expected a launch of '")
             << kernel.getSymName() << "', got none";
  return success();
}

namespace {
struct VerifyLowered : impl::VerifyLoweredBase<VerifyLowered> {
  void runOnOperation() override {
    WalkResult functions =
        getOperation().walk([](func::FuncOp function) -> WalkResult {
          return verifyFunction(function);
        });
    if (functions.wasInterrupted() || failed(verifyKernels(getOperation())))
      return signalPassFailure();
    markAllAnalysesPreserved();
  }
};
} // namespace

} // namespace rota::lowering
