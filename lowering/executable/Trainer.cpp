// SPDX-License-Identifier: Apache-2.0
//
// Puts tasks, kernels and data into one module.
#include "lowering/executable/Trainer.h"
#include "lowering/cpu/Object.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

using namespace mlir;

namespace rota::lowering {

/// A constant array of the addresses of symbols.
static void addSymbolTable(ImplicitLocOpBuilder &b, StringRef name,
                           ArrayRef<std::string> symbols) {
  Type pointer = LLVM::LLVMPointerType::get(b.getContext());
  auto type = LLVM::LLVMArrayType::get(pointer, symbols.size());
  auto table = LLVM::GlobalOp::create(b, type, /*isConstant=*/true,
                                      LLVM::Linkage::External, name,
                                      /*value=*/Attribute());
  OpBuilder::InsertionGuard guard(b);
  b.createBlock(&table.getInitializerRegion());
  Value value = LLVM::UndefOp::create(b, type);
  for (auto [i, symbol] : llvm::enumerate(symbols))
    value = LLVM::InsertValueOp::create(
        b, value, LLVM::AddressOfOp::create(b, pointer, symbol),
        ArrayRef<int64_t>{int64_t(i)});
  LLVM::ReturnOp::create(b, value);
}

static void addProgram(ImplicitLocOpBuilder &b, const Program &program) {
  std::string bytes = toBytes(program);
  auto type = LLVM::LLVMArrayType::get(b.getI8Type(), bytes.size());
  LLVM::GlobalOp::create(b, type, /*isConstant=*/true, LLVM::Linkage::External,
                         "rotaProgram", b.getStringAttr(bytes));
  LLVM::GlobalOp::create(b, b.getI64Type(), /*isConstant=*/true,
                         LLVM::Linkage::External, "rotaProgramSize",
                         b.getI64IntegerAttr(bytes.size()));
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

void addProgramData(ModuleOp tasks, const Program &program) {
  ImplicitLocOpBuilder b(tasks.getLoc(), tasks.getContext());
  b.setInsertionPointToEnd(tasks.getBody());
  addSymbolTable(b, "rotaTasks", program.tasks);
  addSymbolTable(b, "rotaKernels", program.kernels);
  addProgram(b, program);
}

} // namespace rota::lowering
