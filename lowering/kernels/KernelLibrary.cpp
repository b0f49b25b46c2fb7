// SPDX-License-Identifier: Apache-2.0
//
// The native kernels of a program, each once.
#include "lowering/kernels/KernelPlan.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace rota::lowering {

KernelLibrary::KernelLibrary(MLIRContext *context, KernelTarget target)
    : module(ModuleOp::create(UnknownLoc::get(context))),
      target(std::move(target)) {
  context
      ->loadDialect<arith::ArithDialect, func::FuncDialect, LLVM::LLVMDialect,
                    math::MathDialect, mlir::rota::RotaDialect, scf::SCFDialect,
                    vector::VectorDialect>();
}

FailureOr<std::string> KernelLibrary::getOrEmit(
    StringRef prefix, StringRef key,
    llvm::function_ref<LogicalResult(OpBuilder &, StringRef)> emit) {
  std::string fullKey = (prefix + "\n" + key).str();
  if (auto found = symbols.find(fullKey); found != symbols.end())
    return found->second;
  std::string symbol = ("kernel_" + prefix + "_" + Twine(symbols.size())).str();
  OpBuilder builder(module->getContext());
  builder.setInsertionPointToEnd(module->getBody());
  if (failed(emit(builder, symbol)))
    return failure();
  symbols[fullKey] = symbol;
  ordered.push_back(symbol);
  return symbol;
}

} // namespace rota::lowering
