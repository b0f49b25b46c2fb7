// SPDX-License-Identifier: Apache-2.0
#include "lowering/executable/KernelObjects.h"

#include "lowering/cpu/Object.h"
#include "lowering/executable/CodeCache.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace rota::lowering {

/// Gives the kernels symbols that follow from their code, and leaves one of
/// those that are equal.
static std::vector<Alias> nameByCode(ModuleOp kernels) {
  std::vector<Alias> aliases;
  llvm::StringSet<> symbols;
  for (auto kernel :
       llvm::make_early_inc_range(kernels.getOps<func::FuncOp>())) {
    std::string name = kernel.getName().str();
    kernel.setName("kernel");
    std::string symbol = "kernel_" + digestOf(kernel.getOperation());
    kernel.setName(symbol);
    aliases.emplace_back(name, symbol);
    if (!symbols.insert(symbol).second)
      kernel.erase();
  }
  return aliases;
}

/// The object file of a kernel of llvm ops, which moves into its own module.
static FailureOr<std::string> emitKernel(LLVM::LLVMFuncOp kernel,
                                         llvm::TargetMachine &machine) {
  OwningOpRef<ModuleOp> module = ModuleOp::create(kernel.getLoc());
  kernel->moveBefore(module->getBody(), module->getBody()->end());
  return emitObject(*module, machine);
}

FailureOr<KernelObjects> emitCpuKernels(KernelLibrary &library,
                                        llvm::TargetMachine &machine) {
  ModuleOp kernels = library.getModule();
  KernelObjects result;
  result.aliases = nameByCode(kernels);
  for (auto kernel : llvm::make_early_inc_range(kernels.getOps<func::FuncOp>()))
    if (auto found = CodeCache(kernel.getName().str(), machine).find()) {
      result.objects[kernel.getName().str()] = std::move(*found);
      kernel.erase();
    }
  if (failed(lowerToLLVMDialect(kernels)))
    return failure();
  for (auto kernel :
       llvm::make_early_inc_range(kernels.getOps<LLVM::LLVMFuncOp>())) {
    std::string symbol = kernel.getName().str();
    auto object = emitKernel(kernel, machine);
    if (failed(object))
      return failure();
    CodeCache(symbol, machine).keep(*object);
    result.objects[symbol] = std::move(*object);
  }
  return result;
}

} // namespace rota::lowering
