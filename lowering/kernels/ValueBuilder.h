// SPDX-License-Identifier: Apache-2.0
//
// Short names for the arithmetic, loops and branches of kernels that are
// written by hand, on every device. Integers are of one type in each call, and
// constants of the type of the other operand. Values are f32 scalars or
// vectors.
#ifndef ROTA_LOWERING_KERNELS_VALUEBUILDER_H
#define ROTA_LOWERING_KERNELS_VALUEBUILDER_H

#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace rota::lowering {

class ValueBuilder {
public:
  using Body = llvm::function_ref<void(mlir::Value index)>;
  using CarryBody = llvm::function_ref<llvm::SmallVector<mlir::Value>(
      mlir::Value index, mlir::ValueRange carried)>;

  explicit ValueBuilder(mlir::ImplicitLocOpBuilder &b) : b(b) {}

  // Integers.
  mlir::Value i32(int64_t value);
  mlir::Value i64(int64_t value);
  mlir::Value like(mlir::Value other, int64_t value); // type of `other`
  mlir::Value add(mlir::Value a, mlir::Value b);
  mlir::Value add(mlir::Value a, int64_t b);
  mlir::Value sub(mlir::Value a, mlir::Value b);
  mlir::Value mul(mlir::Value a, int64_t b);
  mlir::Value div(mlir::Value a, int64_t b); // for values that are not negative
  mlir::Value rem(mlir::Value a, int64_t b); // for values that are not negative
  mlir::Value min(mlir::Value a, mlir::Value b);
  mlir::Value max(mlir::Value a, mlir::Value b);
  mlir::Value isEqual(mlir::Value a, mlir::Value b);
  mlir::Value isLess(mlir::Value a, mlir::Value b);
  mlir::Value isWithin(mlir::Value a, int64_t end); // 0 <= a < end
  mlir::Value both(mlir::Value a, mlir::Value b);
  mlir::Value either(mlir::Value a, mlir::Value b);

  mlir::Value select(mlir::Value condition, mlir::Value yes, mlir::Value no);

  // Loops from `from` to below `to`.
  void loop(mlir::Value from, mlir::Value to, int64_t step, Body body);
  void loop(int64_t from, int64_t to, int64_t step, Body body);
  llvm::SmallVector<mlir::Value> loop(mlir::Value from, mlir::Value to,
                                      int64_t step, mlir::ValueRange initial,
                                      CarryBody body);
  void when(mlir::Value condition, llvm::function_ref<void()> body);
  void branch(mlir::Value condition, llvm::function_ref<void()> yes,
              llvm::function_ref<void()> no);
  /// The values of one of the two.
  using ValuesBody = llvm::function_ref<llvm::SmallVector<mlir::Value>()>;
  llvm::SmallVector<mlir::Value> choose(mlir::Value condition, ValuesBody yes,
                                        ValuesBody no);
  /// `choose` for one value.
  mlir::Value choose(mlir::Value condition,
                     llvm::function_ref<mlir::Value()> yes,
                     llvm::function_ref<mlir::Value()> no);

  // f32, scalars or vectors alike.
  mlir::Value f32(float value);
  mlir::Value addf(mlir::Value a, mlir::Value b);
  mlir::Value subf(mlir::Value a, mlir::Value b);
  mlir::Value mulf(mlir::Value a, mlir::Value b);
  mlir::Value divf(mlir::Value a, mlir::Value b);
  mlir::Value maxf(mlir::Value a, mlir::Value b);
  mlir::Value fma(mlir::Value a, mlir::Value b, mlir::Value c); // a * b + c
  mlir::Value log(mlir::Value value);
  mlir::Value tanh(mlir::Value value);

  mlir::ImplicitLocOpBuilder &ops() { return b; }

protected:
  mlir::ImplicitLocOpBuilder &b;
};

} // namespace rota::lowering

#endif // ROTA_LOWERING_KERNELS_VALUEBUILDER_H
