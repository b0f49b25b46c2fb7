// SPDX-License-Identifier: Apache-2.0
//
// Softmax cross-entropy. Forward reads each row of logits twice (maximum, sum
// of exponentials) and writes a scalar or two; the derivative may overwrite the
// logits, so that they are never held twice. Where the vocabulary is divided,
// each part's columns give two numbers a row, which are merged.
#include "lowering/kernels/KernelBuilder.h"
#include "lowering/kernels/TokenShapes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include <limits>

using namespace mlir;

namespace rota::lowering {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// Independent sums and maxima of a row: they hide the latency of an addition.
constexpr int64_t kChains = 4;

/// Calls body(start, count, carried) for the vectors of a row in turn. The last
/// one may have fewer elements. Vector i carries the value of chain i modulo
/// kChains; returns the chains' last values.
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

/// The logarithm of the sum of the exponentials of `columns` numbers, or of
/// those before `end`; the least f32 where there are none.
Value emitLogSumExp(KernelBuilder &k, Memory line, int64_t columns,
                    Value end = {}) {
  // No infinities: all columns of a part may be padding.
  constexpr float least = std::numeric_limits<float>::lowest();
  auto load = [&](Value start, int64_t count) {
    Value x = k.loadVector(line, start, count, -kInfinity);
    return end ? k.before(end, start, x, -kInfinity) : x;
  };
  SmallVector<Value> highest =
      overColumns(k, columns, k.splat(end ? least : -kInfinity),
                  [&](Value start, int64_t count, Value before) {
                    return k.maxf(before, load(start, count));
                  });
  Value top = k.maxLanes(
      k.maxf(k.maxf(highest[0], highest[1]), k.maxf(highest[2], highest[3])));
  Value tops = k.broadcast(top);
  SmallVector<Value> sums = overColumns(
      k, columns, k.splat(0.0f), [&](Value start, int64_t count, Value before) {
        return k.addf(before, k.exp(k.subf(load(start, count), tops)));
      });
  Value sum =
      k.sumLanes(k.addf(k.addf(sums[0], sums[1]), k.addf(sums[2], sums[3])));
  Value total = k.addf(top, k.log(sum));
  return end ? k.maxf(total, k.f32(least)) : total;
}

/// Stores a row's logsumexp; 0 where the row does not count.
void storeLogSumExp(KernelBuilder &k, Value total, Value target,
                    Memory logsumexp, Value row) {
  Value counts = k.isLess(k.i64(-1), target);
  k.store(k.select(counts, total, k.f32(0.0f)), logsumexp, row);
}

/// Arguments: logits, targets, logsumexp, loss of each row.
void emitRowLoss(KernelBuilder &k, const Logits &logits) {
  Type f32 = k.ops().getF32Type(), i32 = k.ops().getI32Type();
  Memory all = k.argument(0, logits.element), targets = k.argument(1, i32);
  Memory logsumexp = k.argument(2, f32), losses = k.argument(3, f32);
  k.loop(k.begin(), k.end(), 1, [&](Value row) {
    Memory line = k.offset(all, k.mul(row, logits.columns));
    Value total = emitLogSumExp(k, line, logits.columns);
    Value target = k.loadIndex(targets, row);
    storeLogSumExp(k, total, target, logsumexp, row);
    k.store(k.f32(0.0f), losses, row);
    k.when(k.isWithin(target, logits.columns),
           [&] { k.store(k.subf(total, k.load(line, target)), losses, row); });
  });
}

/// The column of row `row`'s target. It is outside the columns where another
/// part of the vocabulary has it or the row does not count.
Value targetColumn(KernelBuilder &k, Memory targets, Value row, Memory offset) {
  return k.sub(k.loadIndex(targets, row), k.loadIndex(offset, k.i64(0)));
}

/// Arguments: logits, targets, offset, parts [rows, 2].
void emitShard(KernelBuilder &k, const Logits &logits) {
  Type f32 = k.ops().getF32Type(), i32 = k.ops().getI32Type();
  Memory all = k.argument(0, logits.element), targets = k.argument(1, i32);
  Memory offset = k.argument(2, i32), parts = k.argument(3, f32);
  k.loop(k.begin(), k.end(), 1, [&](Value row) {
    Memory line = k.offset(all, k.mul(row, logits.columns));
    Memory part = k.offset(parts, k.mul(row, 2));
    k.store(emitLogSumExp(k, line, logits.columns,
                          logits.end(k, k.loadIndex(offset, k.i64(0)))),
            part, k.i64(0));
    Value target = targetColumn(k, targets, row, offset);
    k.branch(
        k.isWithin(target, logits.columns),
        [&] { k.store(k.load(line, target), part, k.i64(1)); },
        [&] { k.store(k.f32(0.0f), part, k.i64(1)); });
  });
}

/// Arguments: parts [rows, columns], targets, logsumexp, loss of each row.
/// Parts are few: a row is done number by number, in order.
void emitMerge(KernelBuilder &k, int64_t columns) {
  Type f32 = k.ops().getF32Type(), i32 = k.ops().getI32Type();
  Memory parts = k.argument(0, f32), targets = k.argument(1, i32);
  Memory logsumexp = k.argument(2, f32), losses = k.argument(3, f32);
  auto overParts = [&](ValueRange initial, KernelBuilder::CarryBody body) {
    return k.loop(k.i64(0), k.i64(columns), 2, initial, body);
  };
  k.loop(k.begin(), k.end(), 1, [&](Value row) {
    Memory line = k.offset(parts, k.mul(row, columns));
    Value top = overParts({k.f32(-kInfinity)}, [&](Value i, ValueRange before) {
      return SmallVector<Value>{k.maxf(before[0], k.load(line, i))};
    })[0];
    SmallVector<Value> sums =
        overParts({k.f32(0.0f), k.f32(0.0f)}, [&](Value i, ValueRange before) {
          Value weight = k.exp(k.subf(k.load(line, i), top));
          Value logit = k.load(line, k.add(i, 1));
          return SmallVector<Value>{k.addf(before[0], weight),
                                    k.addf(before[1], logit)};
        });
    Value total = k.addf(top, k.log(sums[0]));
    Value target = k.loadIndex(targets, row);
    storeLogSumExp(k, total, target, logsumexp, row);
    Value counts = k.isLess(k.i64(-1), target);
    k.store(k.select(counts, k.subf(total, sums[1]), k.f32(0.0f)), losses, row);
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
/// logits), the offset of a part, the cotangent of each row's logsumexp.
void emitGradient(KernelBuilder &k, const Logits &logits,
                  CrossEntropyGradient form) {
  bool isPart = form.isPart;
  Type f32 = k.ops().getF32Type(), i32 = k.ops().getI32Type();
  Memory all = k.argument(1, logits.element), targets = k.argument(2, i32);
  Memory logsumexp = k.argument(3, f32), result = k.argument(4, logits.element);
  Value cotangent = k.load(k.argument(0, f32), k.i64(0));
  k.loop(k.begin(), k.end(), 1, [&](Value row) {
    Memory line = k.offset(all, k.mul(row, logits.columns));
    Memory to = k.offset(result, k.mul(row, logits.columns));
    Value target = k.loadIndex(targets, row);
    Value counts = k.isLess(k.i64(-1), target);
    Value column =
        isPart ? targetColumn(k, targets, row, k.argument(form.offset, i32))
               : target;
    Value hasTarget = k.isWithin(column, logits.columns);
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
      Value read = k.select(hasTarget, column, k.i64(0));
      Value own = k.exp(k.subf(k.load(line, read), total));
      Value ofRow = cotangent; // factor of the probabilities
      if (form.hasRows) {
        ofRow = k.addf(cotangent, k.load(k.argument(form.rows(), f32), row));
        own = k.subf(k.mulf(ofRow, own), cotangent);
      } else {
        own = k.mulf(cotangent, k.subf(own, k.f32(1.0f)));
      }
      Value totals = k.broadcast(total), factor = k.broadcast(ofRow);
      Value end; // end of the entries
      if (isPart)
        end =
            logits.end(k, k.loadIndex(k.argument(form.offset, i32), k.i64(0)));
      overColumns(k, logits.columns, factor,
                  [&](Value start, int64_t count, Value carried) {
                    Value x = k.loadVector(line, start, count);
                    Value weight = k.exp(k.subf(x, totals));
                    Value result = k.mulf(factor, weight);
                    if (end)
                      result = k.before(end, start, result, 0.0f);
                    k.storeVector(result, to, start, count);
                    return carried;
                  });
      k.when(hasTarget, [&] { k.store(own, to, column); });
    });
  });
}

/// planLosses with a kernel that adds `rows` losses.
FailureOr<KernelPlan> planLoss(FailureOr<std::string> rowLoss, int64_t rows,
                               KernelLibrary &library) {
  FailureOr<std::string> lossSum =
      emitDedicated(library, "cross_entropy_sum", std::to_string(rows), 4,
                    [&](KernelBuilder &k) { emitLossSum(k, rows); });
  return planLosses(rowLoss, lossSum, rows);
}

} // namespace

static FailureOr<KernelPlan> planCrossEntropy(mlir::rota::CrossEntropyOp op,
                                              KernelLibrary &library) {
  Logits logits(op.getLogits());
  return planLoss(
      emitDedicated(library, "cross_entropy", logits.key(), 4,
                    [&](KernelBuilder &k) { emitRowLoss(k, logits); }),
      logits.rows, library);
}

static FailureOr<KernelPlan>
planCrossEntropyMerge(mlir::rota::CrossEntropyMergeOp op,
                      KernelLibrary &library) {
  Logits parts(op.getParts());
  return planLoss(
      emitDedicated(library, "cross_entropy_merge", parts.key(), 4,
                    [&](KernelBuilder &k) { emitMerge(k, parts.columns); }),
      parts.rows, library);
}

static FailureOr<KernelPlan>
planCrossEntropyShard(mlir::rota::CrossEntropyShardOp op,
                      KernelLibrary &library) {
  Logits logits(op.getLogits(), op.getVocabulary());
  FailureOr<std::string> symbol =
      emitDedicated(library, "cross_entropy_shard", logits.key(), 4,
                    [&](KernelBuilder &k) { emitShard(k, logits); });
  return planCall(symbol, logits.rows, 1, /*operands=*/3);
}

static FailureOr<KernelPlan>
planCrossEntropyGrad(mlir::rota::CrossEntropyGradOp op,
                     KernelLibrary &library) {
  Logits logits(op.getLogits(), op.getVocabulary());
  CrossEntropyGradient form(op);
  FailureOr<std::string> symbol =
      emitDedicated(library, "cross_entropy_grad", logits.key() + form.key(),
                    form.arguments(),
                    [&](KernelBuilder &k) { emitGradient(k, logits, form); });
  return form.plan(symbol, logits.rows);
}

void addCrossEntropyEmitters(KernelEmitters &emitters) {
  emitters.add<planCrossEntropy>();
  emitters.add<planCrossEntropyGrad>();
  emitters.add<planCrossEntropyShard>();
  emitters.add<planCrossEntropyMerge>();
}

} // namespace rota::lowering
