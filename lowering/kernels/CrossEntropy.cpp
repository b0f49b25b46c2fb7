// SPDX-License-Identifier: Apache-2.0
//
// Softmax cross-entropy. Forward reads each row of logits twice (maximum, sum
// of exponentials) and writes a scalar or two; the derivative may overwrite the
// logits, so that they are never held twice.
#include "lowering/kernels/DedicatedKernels.h"
#include "lowering/kernels/KernelBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include <limits>

using namespace mlir;

namespace rota::lowering {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// Independent sums and maxima of a row: they hide the latency of an addition.
constexpr int64_t kChains = 4;

/// Calls body(start, chain, count) for the vectors of a row in turn, the last
/// of which may have fewer elements; `carried` has a value per chain.
SmallVector<Value> overColumns(
    KernelBuilder &k, int64_t columns, Value initial,
    llvm::function_ref<Value(Value start, int64_t count, Value carried)> body) {
  int64_t lanes = k.lanes(), step = kChains * lanes;
  int64_t whole = columns / step * step;
  SmallVector<Value> chains(kChains, initial);
  chains = k.loop(k.i64(0), k.i64(whole), step, chains,
                  [&](Value start, ValueRange carried) {
                    SmallVector<Value> next;
                    for (int64_t c = 0; c < kChains; ++c)
                      next.push_back(
                          body(k.add(start, c * lanes), lanes, carried[c]));
                    return next;
                  });
  for (int64_t start = whole, c = 0; start < columns; start += lanes, ++c)
    chains[c] = body(k.i64(start), std::min(lanes, columns - start), chains[c]);
  return chains;
}

/// The logits of one op.
struct Logits {
  explicit Logits(Value value) {
    auto type = cast<RankedTensorType>(value.getType());
    rows = type.getDimSize(0) * type.getDimSize(1);
    columns = type.getDimSize(2);
    element = type.getElementType();
  }
  std::string key() const {
    std::string text;
    llvm::raw_string_ostream(text) << columns << 'x' << element;
    return text;
  }
  int64_t rows, columns;
  Type element;
};

/// Arguments: logits, targets, logsumexp, loss of each row.
void emitRowLoss(KernelBuilder &k, const Logits &logits) {
  Type f32 = k.ops().getF32Type(), i32 = k.ops().getI32Type();
  Memory all = k.argument(0, logits.element), targets = k.argument(1, i32);
  Memory logsumexp = k.argument(2, f32), losses = k.argument(3, f32);
  k.loop(k.begin(), k.end(), 1, [&](Value row) {
    Memory line = k.offset(all, k.mul(row, logits.columns));
    SmallVector<Value> highest = overColumns(
        k, logits.columns, k.splat(-kInfinity),
        [&](Value start, int64_t count, Value before) {
          return k.maxf(before, k.loadVector(line, start, count, -kInfinity));
        });
    Value top = k.maxLanes(
        k.maxf(k.maxf(highest[0], highest[1]), k.maxf(highest[2], highest[3])));
    Value tops = k.broadcast(top);
    SmallVector<Value> sums =
        overColumns(k, logits.columns, k.splat(0.0f),
                    [&](Value start, int64_t count, Value before) {
                      Value x = k.loadVector(line, start, count, -kInfinity);
                      return k.addf(before, k.exp(k.subf(x, tops)));
                    });
    Value sum =
        k.sumLanes(k.addf(k.addf(sums[0], sums[1]), k.addf(sums[2], sums[3])));
    Value total = k.addf(top, k.log(sum));
    k.store(total, logsumexp, row);
    k.store(k.f32(0.0f), losses, row);
    Value target = k.loadIndex(targets, row);
    k.when(k.isLess(k.i64(-1), target),
           [&] { k.store(k.subf(total, k.load(line, target)), losses, row); });
  });
}

/// Arguments: loss of each row, targets, sum, weight. One kernel row does all,
/// in ascending order, in f64: there may be many rows.
void emitLossSum(KernelBuilder &k, int64_t rows) {
  ImplicitLocOpBuilder &b = k.ops();
  Type f32 = b.getF32Type(), f64 = b.getF64Type();
  Memory losses = k.argument(0, f32), targets = k.argument(1, b.getI32Type());
  auto real = [&](double value) -> Value {
    return arith::ConstantOp::create(b, b.getF64FloatAttr(value));
  };
  k.loop(k.begin(), k.end(), 1, [&](Value row) {
    SmallVector<Value> sums =
        k.loop(k.i64(0), k.i64(rows), 1, {real(0.0), real(0.0)},
               [&](Value i, ValueRange carried) {
                 Value loss = arith::ExtFOp::create(b, f64, k.load(losses, i));
                 Value counts = k.isLess(k.i64(-1), k.loadIndex(targets, i));
                 Value one = k.select(counts, real(1.0), real(0.0));
                 return SmallVector<Value>{k.addf(carried[0], loss),
                                           k.addf(carried[1], one)};
               });
    for (unsigned i = 0; i < 2; ++i)
      k.store(arith::TruncFOp::create(b, f32, sums[i]), k.argument(2 + i, f32),
              row);
  });
}

/// Arguments: cotangent, logits, targets, logsumexp, result (which may be the
/// logits).
void emitGradient(KernelBuilder &k, const Logits &logits) {
  Type f32 = k.ops().getF32Type(), i32 = k.ops().getI32Type();
  Memory all = k.argument(1, logits.element), targets = k.argument(2, i32);
  Memory logsumexp = k.argument(3, f32), result = k.argument(4, logits.element);
  Value cotangent = k.load(k.argument(0, f32), k.i64(0));
  k.loop(k.begin(), k.end(), 1, [&](Value row) {
    Memory line = k.offset(all, k.mul(row, logits.columns));
    Memory to = k.offset(result, k.mul(row, logits.columns));
    Value target = k.loadIndex(targets, row);
    Value counts = k.isLess(k.i64(-1), target);
    k.when(k.isLess(target, k.i64(0)), [&] {
      overColumns(k, logits.columns, k.splat(0.0f),
                  [&](Value start, int64_t count, Value zero) {
                    k.storeVector(zero, to, start, count);
                    return zero;
                  });
    });
    k.when(counts, [&] {
      Value total = k.load(logsumexp, row);
      // Read before the loop overwrites it.
      Value own = k.exp(k.subf(k.load(line, target), total));
      own = k.mulf(cotangent, k.subf(own, k.f32(1.0f)));
      Value totals = k.broadcast(total), factor = k.broadcast(cotangent);
      overColumns(k, logits.columns, factor,
                  [&](Value start, int64_t count, Value carried) {
                    Value x = k.loadVector(line, start, count);
                    Value weight = k.exp(k.subf(x, totals));
                    k.storeVector(k.mulf(factor, weight), to, start, count);
                    return carried;
                  });
      k.store(own, to, target);
    });
  });
}

} // namespace

FailureOr<KernelPlan> planCrossEntropy(mlir::rota::CrossEntropyOp op,
                                       KernelLibrary &library) {
  Logits logits(op.getLogits());
  FailureOr<std::string> rowLoss =
      emitDedicated(library, "cross_entropy", logits.key(), 4,
                    [&](KernelBuilder &k) { emitRowLoss(k, logits); });
  FailureOr<std::string> lossSum =
      emitDedicated(library, "cross_entropy_sum", std::to_string(logits.rows),
                    4, [&](KernelBuilder &k) { emitLossSum(k, logits.rows); });
  if (failed(rowLoss) || failed(lossSum))
    return failure();
  using Kind = KernelArgument::Kind;
  KernelPlan plan;
  plan.temporaries.push_back(logits.rows * sizeof(float));
  plan.calls.push_back({*rowLoss,
                        logits.rows,
                        1,
                        {{Kind::Operand, 0},
                         {Kind::Operand, 1},
                         {Kind::Result, 2},
                         {Kind::Temporary, 0}}});
  plan.calls.push_back({*lossSum,
                        1,
                        1,
                        {{Kind::Temporary, 0},
                         {Kind::Operand, 1},
                         {Kind::Result, 0},
                         {Kind::Result, 1}}});
  return plan;
}

FailureOr<KernelPlan> planCrossEntropyGrad(mlir::rota::CrossEntropyGradOp op,
                                           KernelLibrary &library) {
  Logits logits(op.getLogits());
  FailureOr<std::string> symbol =
      emitDedicated(library, "cross_entropy_grad", logits.key(), 5,
                    [&](KernelBuilder &k) { emitGradient(k, logits); });
  if (failed(symbol))
    return failure();
  using Kind = KernelArgument::Kind;
  KernelPlan plan;
  plan.calls.push_back({*symbol,
                        logits.rows,
                        1,
                        {{Kind::Operand, 0},
                         {Kind::Operand, 1},
                         {Kind::Operand, 2},
                         {Kind::Operand, 3},
                         {Kind::Result, 0}}});
  plan.inPlace.push_back({1, 0});
  return plan;
}

} // namespace rota::lowering
