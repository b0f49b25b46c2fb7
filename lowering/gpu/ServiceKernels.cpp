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

/// The files of kernels, from the build folder.
static constexpr StringRef kTransferServices =
#include "lowering/gpu/transfer-services.mlir.inc"
    ;
static constexpr StringRef kStepServices =
#include "lowering/gpu/step-services.mlir.inc"
    ;

static LogicalResult addKernels(StringRef text, StringRef file,
                                gpu::GPUModuleOp module) {
  auto parsed = parseSourceString<ModuleOp>(text, module.getContext(),
                                            ("lowering/gpu/" + file).str());
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

LogicalResult addServiceKernels(gpu::GPUModuleOp module) {
  MLIRContext *context = module.getContext();
  context->loadDialect<arith::ArithDialect, gpu::GPUDialect, NVVM::NVVMDialect,
                       scf::SCFDialect, vector::VectorDialect>();
  return success(
      succeeded(
          addKernels(kTransferServices, "transfer-services.mlir", module)) &&
      succeeded(addKernels(kStepServices, "step-services.mlir", module)));
}

} // namespace rota::lowering
