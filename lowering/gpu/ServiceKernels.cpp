// SPDX-License-Identifier: Apache-2.0
//
// Reads the service kernels and links them into a module.
#include "lowering/gpu/ServiceKernels.h"

#include "runtime/device/cuda/ServiceKernels.h"

#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/Linker/Linker.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace mlir;

namespace rota::lowering {

static constexpr uint8_t kStepServices[] = {
#include "lowering/gpu/services/StepServices.bc.inc"
};
static constexpr uint8_t kTransferServices[] = {
#include "lowering/gpu/services/TransferServices.bc.inc"
};

static LogicalResult link(Location loc, ArrayRef<uint8_t> bitcode,
                          llvm::Module &kernels) {
  llvm::MemoryBufferRef bytes(llvm::toStringRef(bitcode), "services");
  auto services = llvm::parseBitcodeFile(bytes, kernels.getContext());
  if (!services)
    return emitError(loc, "expected kernels of the runtime, got ")
           << llvm::toString(services.takeError());
  for (llvm::Function &function : **services) {
    if (function.isDeclaration())
      continue;
    if (kernels.getFunction(function.getName()))
      return emitError(loc, "expected kernels of a model, got '")
             << function.getName() << "', a name of the runtime's kernels";
    function.addFnAttr("nvvm.maxntid", std::to_string(cuda::kServiceThreads));
  }
  return failure(llvm::Linker::linkModules(kernels, std::move(*services)));
}

LogicalResult linkServiceKernels(Location loc, llvm::Module &kernels) {
  return success(succeeded(link(loc, kStepServices, kernels)) &&
                 succeeded(link(loc, kTransferServices, kernels)));
}

std::unique_ptr<llvm::Module>
translateTrainerKernels(gpu::GPUModuleOp source, llvm::LLVMContext &context,
                        StringRef chip) {
  auto kernels = translateForGpu(source, context, chip);
  if (!kernels || failed(linkServiceKernels(source.getLoc(), *kernels)))
    return nullptr;
  return kernels;
}

} // namespace rota::lowering
