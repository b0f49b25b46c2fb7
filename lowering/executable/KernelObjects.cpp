// SPDX-License-Identifier: Apache-2.0
#include "lowering/executable/KernelObjects.h"

#include "lowering/cpu/Object.h"
#include "lowering/executable/CodeCache.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace rota::lowering {

/// The object file of `kernel`, which is moved into a module of its own.
static FailureOr<std::string> emitKernel(func::FuncOp kernel,
                                         llvm::TargetMachine &machine) {
  OwningOpRef<ModuleOp> module = ModuleOp::create(kernel.getLoc());
  kernel->moveBefore(module->getBody(), module->getBody()->end());
  if (failed(lowerToLLVMDialect(*module)))
    return failure();
  return emitObject(*module, machine);
}

FailureOr<KernelObjects> emitCpuKernels(KernelLibrary &library,
                                        llvm::TargetMachine &machine) {
  KernelObjects result;
  llvm::StringSet<> made;
  for (auto kernel :
       llvm::make_early_inc_range(library.getModule().getOps<func::FuncOp>())) {
    std::string name = kernel.getName().str();
    kernel.setName("kernel");
    std::string symbol = "kernel_" + digestOf(kernel.getOperation());
    kernel.setName(symbol);
    result.aliases.emplace_back(name, symbol);
    if (made.insert(symbol).second) {
      auto object =
          codeOf(symbol, machine, [&] { return emitKernel(kernel, machine); });
      if (failed(object))
        return failure();
      result.objects.push_back(std::move(*object));
    }
  }
  library.getModule().getBody()->clear();
  return result;
}

} // namespace rota::lowering
