// SPDX-License-Identifier: Apache-2.0
#include "lowering/simt/TrainerKernels.h"
#include "runtime/Abi.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/Module.h"
#include "llvm/Linker/Linker.h"

using namespace llvm;

namespace rota::lowering {

FailureOr<GpuCode> linkHostKernels(mlir::Location loc, Module &trainer,
                                   const Module &gpu, const TargetMachine &host,
                                   const HostKernelOptions &options) {
  auto code = makeHostKernels(loc, gpu, host, options);
  if (failed(code))
    return failure();
  std::vector<std::string> descriptions;
  for (const Function &function : gpu)
    if (function.getCallingConv() == CallingConv::PTX_Kernel) {
      (*code)
          ->getFunction(function.getName())
          ->setLinkage(GlobalValue::InternalLinkage);
      descriptions.push_back(descriptionSymbol(function.getName()));
    }
  if (Linker::linkModules(trainer, std::move(*code)))
    return mlir::emitError(loc, "expected kernels that link with the tasks");
  auto *pointer = PointerType::get(trainer.getContext(), 0);
  SmallVector<Constant *> addresses;
  for (const std::string &name : descriptions) {
    GlobalVariable *description = trainer.getNamedGlobal(name);
    description->setLinkage(GlobalValue::InternalLinkage);
    addresses.push_back(description);
  }
  addresses.push_back(ConstantPointerNull::get(pointer));
  return GpuCode{
      ROTA_GPU_HOST, 0,
      ConstantArray::get(ArrayType::get(pointer, addresses.size()), addresses)};
}

} // namespace rota::lowering
