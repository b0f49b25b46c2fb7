// SPDX-License-Identifier: Apache-2.0
//
// Softmax cross-entropy, on every device. Forward writes a scalar or two for
// each row of logits; the derivative may overwrite the logits, so that they are
// never held twice: a thread reads and writes the same columns. Where the
// vocabulary is divided, each part's columns give two numbers a row, which are
// merged.
#include "lowering/kernels/RowBuilder.h"
#include "lowering/kernels/TokenShapes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include <limits>

using namespace mlir;

namespace rota::lowering {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
/// Threads of a row, or of the sum of all losses, at most.
constexpr int64_t kMostThreads = 512;
/// Elements that a thread loads before it uses them.
constexpr int64_t kInFlight = 32;

/// A row of logits, or of their derivative.
Memory lineOf(RowBuilder &k, unsigned argument, const Logits &logits,
              Value row) {
  return k.offset(k.argument(argument, logits.element),
                  k.mul(row, logits.stride));
}

/// Stores a row's logsumexp, argument 2; 0 where the row does not count.
void storeLogSumExp(RowBuilder &k, Value total, Value target, Value row) {
  Value counts = k.isLess(k.i64(-1), target);
  k.store(k.select(counts, total, k.f32(0.0f)),
          k.argument(2, k.ops().getF32Type()), row);
}

/// Arguments: logits, targets, logsumexp, loss of each row. The row's
/// logsumexp.
Value emitRowLoss(RowBuilder &k, const Logits &logits, Value row) {
  Type f32 = k.ops().getF32Type(), i32 = k.ops().getI32Type();
  Memory line = lineOf(k, 0, logits, row);
  Value total = k.logSumExp(line, logits.columns, /*end=*/{});
  k.once([&] {
    Value target = k.loadIndex(k.argument(1, i32), row);
    storeLogSumExp(k, total, target, row);
    Value loss = k.choose(
        k.isWithin(target, logits.columns),
        [&] { return k.subf(total, k.load(line, target)); },
        [&] { return k.f32(0.0f); });
    k.store(loss, k.argument(3, f32), row);
  });
  return total;
}

/// Arguments: logits, targets, offset, parts [rows, 2].
void emitShard(RowBuilder &k, const Logits &logits, Value row) {
  Type f32 = k.ops().getF32Type(), i32 = k.ops().getI32Type();
  Memory line = lineOf(k, 0, logits, row);
  Value offset = k.loadIndex(k.argument(2, i32), k.i64(0));
  Value total = k.logSumExp(line, logits.columns, logits.end(k, offset));
  k.once([&] {
    // Outside the columns where another part has it or the row does not count.
    Value target = k.sub(k.loadIndex(k.argument(1, i32), row), offset);
    Memory part = k.offset(k.argument(3, f32), k.mul(row, 2));
    k.store(total, part, k.i64(0));
    Value logit = k.choose(
        k.isWithin(target, logits.columns),
        [&] { return k.load(line, target); }, [&] { return k.f32(0.0f); });
    k.store(logit, part, k.i64(1));
  });
}

/// Arguments: parts [rows, columns], targets, logsumexp, loss of each row.
/// Parts are few: a row is done number by number, in order.
void emitMerge(RowBuilder &k, const Logits &parts, Value row) {
  Type f32 = k.ops().getF32Type(), i32 = k.ops().getI32Type();
  Memory line = lineOf(k, 0, parts, row);
  auto overParts = [&](ValueRange initial, RowBuilder::CarryBody body) {
    return k.loop(k.i64(0), k.i64(parts.columns), 2, initial, body);
  };
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
  Value target = k.loadIndex(k.argument(1, i32), row);
  storeLogSumExp(k, total, target, row);
  Value counts = k.isLess(k.i64(-1), target);
  k.store(k.select(counts, k.subf(total, sums[1]), k.f32(0.0f)),
          k.argument(3, f32), row);
}

/// Arguments: loss of each row, targets, sum, weight. One kernel row does all,
/// in f64: there may be many rows.
void emitLossSum(RowBuilder &k, int64_t rows) {
  ImplicitLocOpBuilder &b = k.ops();
  Type f32 = b.getF32Type(), f64 = b.getF64Type();
  Memory losses = k.argument(0, f32), targets = k.argument(1, b.getI32Type());
  auto real = [&](double value) -> Value {
    return arith::ConstantOp::create(b, b.getF64FloatAttr(value));
  };
  SmallVector<Value> sums =
      k.sumEach(rows, {real(0.0), real(0.0)}, [&](Value i, ValueRange carried) {
        Value loss = arith::ExtFOp::create(b, f64, k.load(losses, i));
        Value counts = k.isLess(k.i64(-1), k.loadIndex(targets, i));
        Value one = k.select(counts, real(1.0), real(0.0));
        return SmallVector<Value>{k.addf(carried[0], loss),
                                  k.addf(carried[1], one)};
      });
  k.once([&] {
    for (unsigned i = 0; i < 2; ++i)
      k.store(arith::TruncFOp::create(b, f32, sums[i]), k.argument(2 + i, f32),
              k.i64(0));
  });
}

/// Numbers of a derivative's arguments; the result may be the logits.
struct GradientArguments {
  unsigned cotangent = 0, logits = 1, targets = 2, logsumexp = 3, result = 4;
};

/// The derivative of a row that counts.
class RowGradient {
public:
  RowGradient(RowBuilder &k, const Logits &logits, CrossEntropyGradient form,
              GradientArguments at, Value row)
      : k(k), logits(logits), form(form), at(at), row(row),
        line(lineOf(k, at.logits, logits, row)),
        to(lineOf(k, at.result, logits, row)) {}

  void clear() {
    k.walkColumns(logits.columns,
                  [&](ArrayRef<Value> firsts, ArrayRef<int64_t> counts) {
                    for (auto [first, count] : llvm::zip(firsts, counts))
                      k.storeVector(k.splat(0.0f), to, first, count);
                  });
  }

  /// `known` is the row's logsumexp where it need not be loaded.
  void derive(Value target, Value known) {
    Type f32 = k.ops().getF32Type(), i32 = k.ops().getI32Type();
    Value column = target, end; // end of the entries
    if (form.isPart) {
      Value offset = k.loadIndex(k.argument(form.offset, i32), k.i64(0));
      column = k.sub(target, offset);
      end = logits.end(k, offset);
    }
    Value total = known ? known : k.load(k.argument(at.logsumexp, f32), row);
    Value cotangent = k.load(k.argument(at.cotangent, f32), k.i64(0));
    // Read before it is overwritten.
    Value own = k.exp(k.subf(k.loadOwn(line, column, logits.columns), total));
    Value ofRow = cotangent; // factor of the probabilities
    if (form.hasRows) {
      ofRow = k.addf(cotangent, k.load(k.argument(form.rows(), f32), row));
      own = k.subf(k.mulf(ofRow, own), cotangent);
    } else {
      own = k.mulf(cotangent, k.subf(own, k.f32(1.0f)));
    }
    storeWeights(k.broadcast(total), k.broadcast(ofRow), end);
    k.storeOwn(own, to, column, logits.columns);
  }

private:
  void storeWeights(Value totals, Value factors, Value end) {
    k.walkColumns(
        logits.columns, [&](ArrayRef<Value> firsts, ArrayRef<int64_t> counts) {
          SmallVector<Value> vectors;
          for (auto [first, count] : llvm::zip(firsts, counts))
            vectors.push_back(k.loadVector(line, first, count));
          for (auto [first, count, x] : llvm::zip(firsts, counts, vectors)) {
            Value result = k.mulf(factors, k.exp(k.subf(x, totals)));
            if (end)
              result = k.before(end, first, result, 0.0f);
            k.storeVector(result, to, first, count);
          }
        });
  }

  RowBuilder &k;
  const Logits &logits;
  CrossEntropyGradient form;
  GradientArguments at;
  Value row;
  Memory line, to;
};

/// Arguments: those, the offset of a part, the cotangent of each row's
/// logsumexp.
void emitGradient(RowBuilder &k, const Logits &logits,
                  CrossEntropyGradient form, Value row,
                  GradientArguments at = {}, Value known = {}) {
  RowGradient gradient(k, logits, form, at, row);
  Value target = k.loadIndex(k.argument(at.targets, k.ops().getI32Type()), row);
  k.branch(
      k.isLess(target, k.i64(0)), [&] { gradient.clear(); },
      [&] { gradient.derive(target, known); });
}

/// planLosses with a kernel that adds `rows` losses.
FailureOr<KernelPlan> planLoss(Operation *op, FailureOr<std::string> rowLoss,
                               int64_t rows, KernelLibrary &library) {
  RowForm form{1, kMostThreads, /*bits=*/128, kMostThreads};
  return planLosses(
      rowLoss,
      emitRowCode(library, op->getLoc(), "cross_entropy_sum",
                  std::to_string(rows), 4, form,
                  [&](RowBuilder &k, Value) { emitLossSum(k, rows); }),
      rows);
}

/// A kernel whose rows are those of the logits.
FailureOr<std::string>
emitRows(KernelLibrary &library, Operation *op, StringRef prefix,
         const Logits &logits, StringRef form, unsigned arguments,
         llvm::function_ref<void(RowBuilder &k, Value row)> body) {
  RowForm rows{logits.rows, logits.columns,
               logits.element.getIntOrFloatBitWidth(), kMostThreads};
  rows.stride = logits.stride;
  rows.inFlight = kInFlight;
  return emitRowCode(library, op->getLoc(), prefix,
                     (Twine(logits.key()) + form).str(), arguments, rows, body);
}

} // namespace

static FailureOr<KernelPlan> planCrossEntropy(mlir::rota::CrossEntropyOp op,
                                              KernelLibrary &library) {
  Logits logits(op.getLogits());
  return planLoss(
      op,
      emitRows(library, op, "cross_entropy", logits, /*form=*/"", 4,
               [&](RowBuilder &k, Value row) { emitRowLoss(k, logits, row); }),
      logits.rows, library);
}

static FailureOr<KernelPlan>
planCrossEntropyMerge(mlir::rota::CrossEntropyMergeOp op,
                      KernelLibrary &library) {
  Logits parts(op.getParts());
  RowForm form{parts.rows, /*columns=*/1, /*bits=*/32, /*most=*/256,
               /*alone=*/true};
  return planLoss(
      op,
      emitRowCode(library, op.getLoc(), "cross_entropy_merge", parts.key(), 4,
                  form,
                  [&](RowBuilder &k, Value row) { emitMerge(k, parts, row); }),
      parts.rows, library);
}

static FailureOr<KernelPlan>
planCrossEntropyShard(mlir::rota::CrossEntropyShardOp op,
                      KernelLibrary &library) {
  Logits logits(op.getLogits(), op.getVocabulary());
  FailureOr<std::string> symbol =
      emitRows(library, op, "cross_entropy_shard", logits, /*form=*/"", 4,
               [&](RowBuilder &k, Value row) { emitShard(k, logits, row); });
  return planCall(symbol, logits.rows, 1, /*operands=*/3);
}

static FailureOr<KernelPlan>
planCrossEntropyGrad(mlir::rota::CrossEntropyGradOp op,
                     KernelLibrary &library) {
  Logits logits(op.getLogits(), op.getVocabulary());
  CrossEntropyGradient form(op);
  FailureOr<std::string> symbol = emitRows(
      library, op, "cross_entropy_grad", logits, form.key(), form.arguments(),
      [&](RowBuilder &k, Value row) { emitGradient(k, logits, form, row); });
  return form.plan(symbol, logits.rows);
}

/// Both in one kernel: a row that is read for the second time comes from a
/// cache. Bits are those of the two kernels.
static FailureOr<KernelPlan>
planCrossEntropyBoth(mlir::rota::CrossEntropyOp loss,
                     mlir::rota::CrossEntropyGradOp gradient,
                     KernelLibrary &library) {
  CrossEntropyGradient form(gradient);
  if (form.isPart || form.hasRows || gradient.getLogits() != loss.getLogits() ||
      gradient.getTargets() != loss.getTargets() ||
      gradient.getLogsumexp() != loss.getLogsumexp())
    return KernelPlan();
  Logits logits(loss.getLogits());
  FailureOr<std::string> rows =
      emitRows(library, loss, "cross_entropy_both", logits, /*form=*/"", 6,
               [&](RowBuilder &k, Value row) {
                 Value total = emitRowLoss(k, logits, row);
                 k.sync(); // The target's logit has been read.
                 emitGradient(k, logits, form, row, {4, 0, 1, 2, 5}, total);
               });
  FailureOr<KernelPlan> plan = planLoss(loss, rows, logits.rows, library);
  if (failed(plan))
    return failure();
  // The cotangent is the first operand of the second op.
  using Kind = KernelArgument::Kind;
  unsigned cotangent = loss->getNumOperands(), result = loss->getNumResults();
  plan->calls[0].arguments.push_back({Kind::Operand, cotangent});
  plan->calls[0].arguments.push_back({Kind::Result, result});
  return plan;
}

void addCrossEntropyEmitters(KernelEmitters &emitters) {
  emitters.add<planCrossEntropy>();
  emitters.add<planCrossEntropyGrad>();
  emitters.add<planCrossEntropyShard>();
  emitters.add<planCrossEntropyMerge>();
}

void addCrossEntropyPairEmitters(KernelEmitters &emitters) {
  emitters.addPair<planCrossEntropyBoth>();
}

} // namespace rota::lowering
