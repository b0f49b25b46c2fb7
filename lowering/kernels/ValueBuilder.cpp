// SPDX-License-Identifier: Apache-2.0
//
// Each method writes the one or two ops that it names.
#include "lowering/kernels/ValueBuilder.h"

#include "lowering/kernels/Emit.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace rota::lowering {

Value ValueBuilder::i32(int64_t value) {
  return arith::ConstantIntOp::create(b, value, 32);
}
Value ValueBuilder::i64(int64_t value) { return constant(b, value); }
Value ValueBuilder::like(Value other, int64_t value) {
  return arith::ConstantIntOp::create(b, value,
                                      other.getType().getIntOrFloatBitWidth());
}
Value ValueBuilder::add(Value x, Value y) {
  return arith::AddIOp::create(b, x, y);
}
Value ValueBuilder::add(Value x, int64_t y) { return add(x, like(x, y)); }
Value ValueBuilder::sub(Value x, Value y) {
  return arith::SubIOp::create(b, x, y);
}
Value ValueBuilder::mul(Value x, int64_t y) {
  return arith::MulIOp::create(b, x, like(x, y));
}
Value ValueBuilder::div(Value x, int64_t y) {
  return arith::DivUIOp::create(b, x, like(x, y));
}
Value ValueBuilder::rem(Value x, int64_t y) {
  return arith::RemUIOp::create(b, x, like(x, y));
}
Value ValueBuilder::min(Value x, Value y) {
  return arith::MinSIOp::create(b, x, y);
}
Value ValueBuilder::max(Value x, Value y) {
  return arith::MaxSIOp::create(b, x, y);
}
Value ValueBuilder::isEqual(Value x, Value y) {
  return arith::CmpIOp::create(b, arith::CmpIPredicate::eq, x, y);
}
Value ValueBuilder::isLess(Value x, Value y) {
  return arith::CmpIOp::create(b, arith::CmpIPredicate::slt, x, y);
}

Value ValueBuilder::isWithin(Value x, int64_t end) {
  // Without its sign a negative number is beyond every end.
  return arith::CmpIOp::create(b, arith::CmpIPredicate::ult, x, like(x, end));
}

Value ValueBuilder::both(Value x, Value y) {
  return arith::AndIOp::create(b, x, y);
}

Value ValueBuilder::either(Value x, Value y) {
  return arith::OrIOp::create(b, x, y);
}

Value ValueBuilder::select(Value condition, Value yes, Value no) {
  return arith::SelectOp::create(b, condition, yes, no);
}

void ValueBuilder::loop(Value from, Value to, int64_t step, Body body) {
  emitLoop(b, from, to, like(from, step), {}, [&](Value index, ValueRange) {
    body(index);
    return SmallVector<Value>();
  });
}

void ValueBuilder::loop(int64_t from, int64_t to, int64_t step, Body body) {
  loop(i64(from), i64(to), step, body);
}

SmallVector<Value> ValueBuilder::loop(Value from, Value to, int64_t step,
                                      ValueRange initial, CarryBody body) {
  return emitLoop(b, from, to, like(from, step), initial, body);
}

void ValueBuilder::when(Value condition, llvm::function_ref<void()> body) {
  auto branch = scf::IfOp::create(b, condition, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  body();
}

void ValueBuilder::branch(Value condition, llvm::function_ref<void()> yes,
                          llvm::function_ref<void()> no) {
  auto branch = scf::IfOp::create(b, condition, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  yes();
  b.setInsertionPointToStart(branch.elseBlock());
  no();
}

SmallVector<Value> ValueBuilder::choose(Value condition, ValuesBody yes,
                                        ValuesBody no) {
  OpBuilder::InsertionGuard guard(b);
  auto build = [&](ValuesBody values) {
    return [&, values](OpBuilder &inner, Location loc) {
      b.setInsertionPointToEnd(inner.getInsertionBlock());
      SmallVector<Value> results = values();
      scf::YieldOp::create(b, results);
    };
  };
  return scf::IfOp::create(b, condition, build(yes), build(no)).getResults();
}

Value ValueBuilder::choose(Value condition, llvm::function_ref<Value()> yes,
                           llvm::function_ref<Value()> no) {
  return choose(
      condition, [&] { return SmallVector<Value>{yes()}; },
      [&] { return SmallVector<Value>{no()}; })[0];
}

Value ValueBuilder::f32(float value) { return constant(b, value); }
Value ValueBuilder::addf(Value x, Value y) {
  return arith::AddFOp::create(b, x, y);
}
Value ValueBuilder::subf(Value x, Value y) {
  return arith::SubFOp::create(b, x, y);
}
Value ValueBuilder::mulf(Value x, Value y) {
  return arith::MulFOp::create(b, x, y);
}
Value ValueBuilder::divf(Value x, Value y) {
  return arith::DivFOp::create(b, x, y);
}
Value ValueBuilder::maxf(Value x, Value y) {
  // A comparison is one instruction; maximumf is more. A NaN that the
  // comparison drops still shows in the sums computed afterwards.
  Value greater = arith::CmpFOp::create(b, arith::CmpFPredicate::OGT, x, y);
  return arith::SelectOp::create(b, greater, x, y);
}
Value ValueBuilder::fma(Value x, Value y, Value z) {
  return math::FmaOp::create(b, x, y, z);
}
Value ValueBuilder::log(Value value) { return math::LogOp::create(b, value); }
Value ValueBuilder::tanh(Value value) { return math::TanhOp::create(b, value); }

} // namespace rota::lowering
