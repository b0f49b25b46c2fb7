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
  // Numbered by prefix: a kernel keeps its name where other kernels differ, and
  // so its code may be found again.
  std::string start = ("kernel_" + prefix + "_").str();
  int64_t number = llvm::count_if(ordered, [&](StringRef other) {
    return other.consume_front(start) && llvm::all_of(other, llvm::isDigit);
  });
  std::string symbol = start + std::to_string(number);
  OpBuilder builder(module->getContext());
  builder.setInsertionPointToEnd(module->getBody());
  if (failed(emit(builder, symbol)))
    return failure();
  symbols[fullKey] = symbol;
  ordered.push_back(symbol);
  return symbol;
}

} // namespace rota::lowering
