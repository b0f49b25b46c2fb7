// SPDX-License-Identifier: Apache-2.0
#include "lowering/simt/TrainerKernels.h"
#include "lowering/gpu/GpuEmitters.h"
#include "lowering/gpu/NvvmModule.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/IR/Module.h"
#include "llvm/Linker/Linker.h"

using namespace mlir;

namespace rota::lowering {

/// The description of a kernel that lowering/simt/HostKernels.h makes.
static std::string codeSymbol(StringRef kernel) {
  return (kernel + ".simt").str();
}

/// Defines `symbol` with the fields of RotaSimtLaunch.
static void addLaunch(ImplicitLocOpBuilder &b, StringRef symbol,
                      const LaunchShape &shape, int64_t arguments) {
  Type pointer = LLVM::LLVMPointerType::get(b.getContext());
  Type i32 = b.getI32Type(), i64 = b.getI64Type();
  auto code = LLVM::GlobalOp::create(b, pointer, /*isConstant=*/true,
                                     LLVM::Linkage::External,
                                     codeSymbol(symbol), Attribute());
  auto type = LLVM::LLVMStructType::getLiteral(
      b.getContext(), {pointer, i32, i32, i32, i32, i64, i64});
  auto launch =
      LLVM::GlobalOp::create(b, type, /*isConstant=*/true,
                             LLVM::Linkage::External, symbol, Attribute());
  OpBuilder::InsertionGuard guard(b);
  b.createBlock(&launch.getInitializerRegion());
  Value value = LLVM::UndefOp::create(b, type);
  int64_t field = 0;
  auto add = [&](Value element) {
    value = LLVM::InsertValueOp::create(b, value, element,
                                        ArrayRef<int64_t>{field++});
  };
  add(LLVM::AddressOfOp::create(b, pointer, code.getSymName()));
  for (int64_t number : shape.grid)
    add(LLVM::ConstantOp::create(b, i32, number));
  add(LLVM::ConstantOp::create(b, i32, shape.block));
  add(LLVM::ConstantOp::create(b, i64, shape.sharedBytes));
  add(LLVM::ConstantOp::create(b, i64, arguments));
  LLVM::ReturnOp::create(b, value);
}

void addSimtLaunches(ModuleOp tasks, KernelLibrary &library) {
  gpu::GPUModuleOp kernels = gpuModuleOf(library);
  ImplicitLocOpBuilder b(tasks.getLoc(), tasks.getContext());
  b.setInsertionPointToEnd(tasks.getBody());
  SymbolTable symbols(tasks);
  for (const std::string &symbol : library.getSymbols()) {
    if (Operation *declaration = symbols.lookup(symbol))
      symbols.erase(declaration);
    auto function = kernels.lookupSymbol<gpu::GPUFuncOp>(symbol);
    addLaunch(b, symbol, library.getLaunchShape(symbol),
              function.getNumArguments());
  }
}

LogicalResult linkSimtKernels(llvm::Module &trainer, KernelLibrary &library,
                              const llvm::TargetMachine &host,
                              const HostKernelOptions &options) {
  gpu::GPUModuleOp kernels = gpuModuleOf(library);
  if (!kernels)
    return success();
  auto gpu = translateForGpu(kernels, trainer.getContext());
  if (!gpu)
    return failure();
  auto code = makeHostKernels(kernels.getLoc(), *gpu, host, options);
  if (failed(code))
    return failure();
  // The trainer has launches by the names of the kernels.
  for (const std::string &symbol : library.getSymbols())
    if (llvm::Function *function = (*code)->getFunction(symbol))
      function->setLinkage(llvm::GlobalValue::InternalLinkage);
  if (llvm::Linker::linkModules(trainer, std::move(*code)))
    return kernels.emitError("expected kernels that link with the tasks");
  return success();
}

} // namespace rota::lowering
