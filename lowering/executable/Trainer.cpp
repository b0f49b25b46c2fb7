// SPDX-License-Identifier: Apache-2.0
//
// Puts tasks, kernels and data into one module.
#include "lowering/executable/Trainer.h"
#include "lowering/cpu/Object.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/Module.h"
#include "llvm/Target/TargetMachine.h"

using namespace mlir;

namespace rota::lowering {

static void addConstant(llvm::Module &module, StringRef name,
                        llvm::Constant *value) {
  new llvm::GlobalVariable(module, value->getType(), /*isConstant=*/true,
                           llvm::GlobalValue::ExternalLinkage, value, name);
}

/// A constant array of the addresses of symbols, which are declared where
/// `module` does not have them.
static void addSymbolTable(llvm::Module &module, StringRef name,
                           ArrayRef<std::string> symbols) {
  llvm::LLVMContext &context = module.getContext();
  SmallVector<llvm::Constant *> addresses;
  for (const std::string &symbol : symbols) {
    llvm::Constant *address = module.getNamedValue(symbol);
    addresses.push_back(address ? address
                                : module.getOrInsertGlobal(
                                      symbol, llvm::Type::getInt8Ty(context)));
  }
  auto *type =
      llvm::ArrayType::get(llvm::PointerType::get(context, 0), symbols.size());
  addConstant(module, name, llvm::ConstantArray::get(type, addresses));
}

LogicalResult addCpuKernels(ModuleOp tasks, KernelLibrary &library) {
  ModuleOp kernels = library.getModule();
  if (failed(lowerToLLVMDialect(kernels)))
    return failure();
  SymbolTable symbols(tasks);
  for (Operation &op :
       llvm::make_early_inc_range(kernels.getBodyRegion().front())) {
    auto symbol = dyn_cast<SymbolOpInterface>(op);
    if (!symbol)
      return op.emitOpError("expected kernels to be functions");
    Operation *declaration = symbols.lookup(symbol.getNameAttr());
    if (declaration && symbol.isDeclaration())
      continue;
    if (declaration)
      symbols.erase(declaration);
    op.moveBefore(tasks.getBody(), tasks.getBody()->end());
    symbols.insert(&op);
  }
  return success();
}

void addProgramData(llvm::Module &module, const Program &program,
                    const llvm::TargetMachine &machine) {
  llvm::LLVMContext &context = module.getContext();
  addConstant(
      module, "rotaProcessor",
      llvm::ConstantDataArray::getString(context, machine.getTargetCPU()));
  addConstant(
      module, "rotaFeatures",
      llvm::ConstantDataArray::getString(context, processorFeatures(machine)));
  addSymbolTable(module, "rotaTasks", program.tasks);
  addSymbolTable(module, "rotaKernels", program.kernels);
  std::string bytes = toBytes(program);
  addConstant(module, "rotaProgram",
              llvm::ConstantDataArray::getString(context, bytes,
                                                 /*AddNull=*/false));
  addConstant(
      module, "rotaProgramSize",
      llvm::ConstantInt::get(llvm::Type::getInt64Ty(context), bytes.size()));
}

FailureOr<std::string> emitProgramData(Location loc, const Program &program,
                                       llvm::TargetMachine &machine) {
  llvm::LLVMContext context;
  llvm::Module module("program", context);
  module.setTargetTriple(machine.getTargetTriple());
  module.setDataLayout(machine.createDataLayout());
  addProgramData(module, program, machine);
  return emitObject(loc, module, machine);
}

} // namespace rota::lowering
