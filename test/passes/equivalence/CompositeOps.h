// SPDX-License-Identifier: Apache-2.0
//
// Functions of composite ops, at any number of rows and columns, for tests of
// what becomes of them.
#ifndef ROTA_TEST_PASSES_EQUIVALENCE_COMPOSITEOPS_H
#define ROTA_TEST_PASSES_EQUIVALENCE_COMPOSITEOPS_H

#include "test/interpreter/Interpreter.h"

namespace rota::interpreter {

struct CompositeOp {
  const char *name;
  /// A function `f` on `$R` rows of `$C` columns, with `$T` for the element
  /// type and `$W` for the type of values that are never bf16.
  const char *text;
};

llvm::ArrayRef<CompositeOp> compositeOps();

/// The function's text for these sizes and this type: "f64", "f32" or "bf16".
std::string compositeText(const CompositeOp &op, int64_t rows, int64_t columns,
                          llvm::StringRef type);

/// Values from 0.1 to 0.9 for the function's arguments, so that they may be
/// second moments and learning rates too; those of bf16 are exact in bf16.
llvm::SmallVector<Tensor> compositeArguments(mlir::func::FuncOp function);

} // namespace rota::interpreter

#endif // ROTA_TEST_PASSES_EQUIVALENCE_COMPOSITEOPS_H
