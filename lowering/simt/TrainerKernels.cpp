// SPDX-License-Identifier: Apache-2.0
#include "lowering/simt/TrainerKernels.h"
#include "runtime/Abi.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/Module.h"
#include "llvm/Linker/Linker.h"

using namespace llvm;

namespace rota::lowering {

SmallVector<std::string> kernelsOf(const Module &gpu) {
  SmallVector<std::string> kernels;
  for (const Function &function : gpu)
    if (function.getCallingConv() == CallingConv::PTX_Kernel)
      kernels.push_back(function.getName().str());
  return kernels;
}

void hideEntries(Module &code, ArrayRef<std::string> kernels) {
  for (const std::string &kernel : kernels)
    code.getFunction(kernel)->setLinkage(GlobalValue::InternalLinkage);
}

GpuCode hostCode(Module &trainer, ArrayRef<std::string> kernels) {
  auto *pointer = PointerType::get(trainer.getContext(), 0);
  SmallVector<Constant *> addresses;
  for (const std::string &kernel : kernels)
    addresses.push_back(
        trainer.getOrInsertGlobal(descriptionSymbol(kernel), pointer));
  addresses.push_back(ConstantPointerNull::get(pointer));
  return GpuCode{
      ROTA_GPU_HOST, 0,
      ConstantArray::get(ArrayType::get(pointer, addresses.size()), addresses)};
}

FailureOr<GpuCode> linkHostKernels(mlir::Location loc, Module &trainer,
                                   const Module &gpu, const TargetMachine &host,
                                   const HostKernelOptions &options) {
  auto code = makeHostKernels(loc, gpu, host, options);
  if (failed(code))
    return failure();
  SmallVector<std::string> kernels = kernelsOf(gpu);
  hideEntries(**code, kernels);
  if (Linker::linkModules(trainer, std::move(*code)))
    return mlir::emitError(loc, "expected kernels that link with the tasks");
  for (const std::string &kernel : kernels)
    trainer.getNamedGlobal(descriptionSymbol(kernel))
        ->setLinkage(GlobalValue::InternalLinkage);
  return hostCode(trainer, kernels);
}

} // namespace rota::lowering
