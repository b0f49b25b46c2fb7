// SPDX-License-Identifier: Apache-2.0
//
// Parses the service kernels and moves them into a module.
#include "lowering/gpu/ServiceKernels.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Parser/Parser.h"

using namespace mlir;

namespace rota::lowering {

/// services.mlir, from the build folder.
static constexpr StringRef kText =
#include "lowering/gpu/services.mlir.inc"
    ;

LogicalResult addServiceKernels(gpu::GPUModuleOp module) {
  MLIRContext *context = module.getContext();
  context->loadDialect<arith::ArithDialect, gpu::GPUDialect, NVVM::NVVMDialect,
                       scf::SCFDialect, vector::VectorDialect>();
  auto parsed = parseSourceString<ModuleOp>(
      kText, context, /*sourceName=*/"lowering/gpu/services.mlir");
  if (!parsed)
    return failure();
  Block *services = (*parsed->getOps<gpu::GPUModuleOp>().begin()).getBody();
  for (Operation &op : *services) {
    StringRef name = SymbolTable::getSymbolName(&op).getValue();
    if (module.lookupSymbol(name))
      return module.emitError("expected kernels of a model, got '")
             << name << "', a name of the runtime's kernels";
  }
  auto &kernels = module.getBody()->getOperations();
  kernels.splice(kernels.end(), services->getOperations());
  return success();
}

} // namespace rota::lowering
