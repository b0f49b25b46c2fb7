// SPDX-License-Identifier: Apache-2.0
//
// Softmax cross-entropy on a GPU: a block does a row. Forward reads the logits
// once, with a maximum and a sum that each thread corrects as it goes on
// (Milakov and Gimelshein 2018). The derivative may overwrite the logits: a
// thread reads and writes the same columns.
#include "lowering/gpu/GpuBuilder.h"
#include "lowering/kernels/TokenShapes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include <limits>

using namespace mlir;

namespace rota::lowering {
namespace {

/// A maximum to begin with. It is no infinity, whose difference from itself is
/// not a number.
constexpr float kLeastLogit = -1e30f;
constexpr float kInfinity = std::numeric_limits<float>::infinity();
/// Elements that a thread loads before it uses them.
constexpr int64_t kInFlight = 32;
constexpr int64_t kMostThreads = 512;
constexpr int64_t kSumThreads = 512;

/// The threads of a row and the parts of it that they take.
struct RowThreads {
  explicit RowThreads(const Logits &logits)
      : width(chunkWidth(logits.columns, logits.element)),
        chunks(logits.columns / width) {
    threads = llvm::alignTo(llvm::divideCeil(logits.columns, kInFlight), kWarp);
    threads = std::min(threads, kMostThreads);
  }

  using Body = llvm::function_ref<SmallVector<Value>(ArrayRef<Value> starts,
                                                     ValueRange carried)>;
  /// Calls body(starts, carried) for all chunks of this thread: several at
  /// first, then one at a time. `starts` are columns (i32). Chunk c is of
  /// thread c modulo `threads`.
  SmallVector<Value> overChunks(GpuBuilder &k, ValueRange initial,
                                Body body) const {
    int64_t group = kInFlight / width, stride = threads * group;
    int64_t whole = chunks / stride * stride;
    auto over = [&](int64_t from, int64_t to, int64_t count,
                    ValueRange carried) {
      return k.loop(k.add(k.thread(), from), k.i32(to), threads * count,
                    carried, [&](Value first, ValueRange before) {
                      SmallVector<Value> starts;
                      for (int64_t i = 0; i < count; ++i)
                        starts.push_back(
                            k.mul(k.add(first, i * threads), width));
                      return body(starts, before);
                    });
    };
    SmallVector<Value> carried(initial);
    if (whole > 0)
      carried = over(0, whole, group, carried);
    if (whole < chunks)
      carried = over(whole, chunks, 1, carried);
    return carried;
  }

  int64_t width, chunks, threads;
};

/// The first element of row number `row` (i32).
Memory rowOf(GpuBuilder &k, Memory memory, Value row, int64_t columns) {
  return k.offset(memory, k.mul(k.widen(row), columns));
}

/// A part of a row: its maximum and the sum of exponentials relative to it.
SmallVector<Value> joinParts(GpuBuilder &k, ValueRange left, ValueRange right) {
  Value top = k.largest(left[0], right[0]);
  auto scaled = [&](ValueRange part) {
    return k.mulf(part[1], k.exp(k.subf(part[0], top)));
  };
  return {top, k.addf(scaled(left), scaled(right))};
}

/// The logarithm of the sum of the exponentials of a row, or of its columns
/// before `end`; the least f32 where there are none. Every thread gets it.
Value emitLogSumExp(GpuBuilder &k, const RowThreads &over, Memory line,
                    Value end = {}) {
  auto addChunks = [&](ArrayRef<Value> starts, ValueRange carried) {
    SmallVector<Value> chunks;
    for (Value start : starts) {
      Value x = k.loadVector(line, start, over.width);
      chunks.push_back(end ? k.before(end, start, x, -kInfinity) : x);
    }
    Value tops = chunks[0];
    for (Value x : ArrayRef(chunks).drop_front())
      tops = k.largest(tops, x);
    Value top =
        k.largest(carried[0], k.combineElements(tops, [&](Value x, Value y) {
          return k.largest(x, y);
        }));
    Value sums;
    for (Value x : chunks) {
      Value weights = k.exp(k.subf(x, k.splat(top, over.width)));
      sums = sums ? k.addf(sums, weights) : weights;
    }
    Value sum =
        k.combineElements(sums, [&](Value x, Value y) { return k.addf(x, y); });
    Value before = k.mulf(carried[1], k.exp(k.subf(carried[0], top)));
    return SmallVector<Value>{top, k.addf(before, sum)};
  };
  SmallVector<Value> part =
      over.overChunks(k, {k.f32(kLeastLogit), k.f32(0.0f)}, addChunks);
  part = k.combineThreads(part, over.threads,
                          [&](ValueRange left, ValueRange right) {
                            return joinParts(k, left, right);
                          });
  Value total = k.addf(part[0], k.log(part[1]));
  constexpr float least = std::numeric_limits<float>::lowest();
  return end ? k.largest(total, k.f32(least)) : total;
}

/// Stores a row's logsumexp, argument 2; 0 where the row does not count.
void storeLogSumExp(GpuBuilder &k, Value total, Value target, Value row) {
  Value counts = k.isLess(k.i32(-1), target);
  k.store(k.select(counts, total, k.f32(0.0f)),
          k.argument(2, k.ops().getF32Type()), row);
}

/// Arguments: logits, targets, logsumexp, loss of each row. The row's
/// logsumexp.
Value emitRowLoss(GpuBuilder &k, const Logits &logits) {
  Type f32 = k.ops().getF32Type(), i32 = k.ops().getI32Type();
  Value row = k.block();
  Memory line = rowOf(k, k.argument(0, logits.element), row, logits.columns);
  Value total = emitLogSumExp(k, RowThreads(logits), line);
  k.when(k.isEqual(k.thread(), k.i32(0)), [&] {
    Value target = k.load(k.argument(1, i32), row);
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
void emitShard(GpuBuilder &k, const Logits &logits) {
  Type f32 = k.ops().getF32Type(), i32 = k.ops().getI32Type();
  Value row = k.block();
  Memory line = rowOf(k, k.argument(0, logits.element), row, logits.columns);
  Value offset = k.load(k.argument(2, i32), k.i32(0));
  Value total =
      emitLogSumExp(k, RowThreads(logits), line, logits.end(k, offset));
  k.when(k.isEqual(k.thread(), k.i32(0)), [&] {
    Value target = k.sub(k.load(k.argument(1, i32), row), offset);
    Memory part = rowOf(k, k.argument(3, f32), row, 2);
    k.store(total, part, k.i32(0));
    Value logit = k.choose(
        k.isWithin(target, logits.columns),
        [&] { return k.load(line, target); }, [&] { return k.f32(0.0f); });
    k.store(logit, part, k.i32(1));
  });
}

/// Arguments: parts [rows, columns], targets, logsumexp, loss of each row.
/// Parts are few: a thread does a row, number by number, in order.
void emitMerge(GpuBuilder &k, const Logits &parts, Value row) {
  Type f32 = k.ops().getF32Type(), i32 = k.ops().getI32Type();
  Memory line =
      k.offset(k.argument(0, f32), k.mul(k.widen(row), parts.columns));
  auto overParts = [&](ValueRange initial, GpuBuilder::CarryBody body) {
    return k.loop(k.i32(0), k.i32(parts.columns), 2, initial, body);
  };
  Value top = overParts({k.f32(-kInfinity)}, [&](Value i, ValueRange before) {
    return SmallVector<Value>{k.largest(before[0], k.load(line, i))};
  })[0];
  SmallVector<Value> sums =
      overParts({k.f32(0.0f), k.f32(0.0f)}, [&](Value i, ValueRange before) {
        Value weight = k.exp(k.subf(k.load(line, i), top));
        Value logit = k.load(line, k.add(i, 1));
        return SmallVector<Value>{k.addf(before[0], weight),
                                  k.addf(before[1], logit)};
      });
  Value total = k.addf(top, k.log(sums[0]));
  Value target = k.load(k.argument(1, i32), row);
  storeLogSumExp(k, total, target, row);
  Value counts = k.isLess(k.i32(-1), target);
  k.store(k.select(counts, k.subf(total, sums[1]), k.f32(0.0f)),
          k.argument(3, f32), row);
}

/// Arguments: loss of each row, targets, sum, weight. One block does all, in
/// f64: there may be many rows.
void emitLossSum(GpuBuilder &k, int64_t rows) {
  ImplicitLocOpBuilder &b = k.ops();
  Type f32 = b.getF32Type(), f64 = b.getF64Type();
  Memory losses = k.argument(0, f32), targets = k.argument(1, b.getI32Type());
  auto real = [&](double value) -> Value {
    return arith::ConstantOp::create(b, b.getF64FloatAttr(value));
  };
  SmallVector<Value> sums =
      k.loop(k.thread(), k.i32(rows), kSumThreads, {real(0.0), real(0.0)},
             [&](Value row, ValueRange carried) {
               Value loss = arith::ExtFOp::create(b, f64, k.load(losses, row));
               Value counts = k.isLess(k.i32(-1), k.load(targets, row));
               Value one = k.select(counts, real(1.0), real(0.0));
               return SmallVector<Value>{k.addf(carried[0], loss),
                                         k.addf(carried[1], one)};
             });
  for (unsigned i = 0; i < 2; ++i) {
    Value sum = k.sumByHalves(sums[i], kSumThreads, /*across=*/1);
    k.when(k.isEqual(k.thread(), k.i32(0)), [&] {
      k.store(arith::TruncFOp::create(b, f32, sum), k.argument(2 + i, f32),
              k.i32(0));
    });
  }
}

/// Numbers of a derivative's arguments; the result may be the logits.
struct GradientArguments {
  unsigned cotangent = 0, logits = 1, targets = 2, logsumexp = 3, result = 4;
};

/// Arguments: those, the offset of a part, the cotangent of each row's
/// logsumexp. `known` is the row's logsumexp where it need not be loaded.
void emitGradient(GpuBuilder &k, const Logits &logits,
                  CrossEntropyGradient form, GradientArguments at = {},
                  Value known = {}) {
  Type f32 = k.ops().getF32Type(), i32 = k.ops().getI32Type();
  RowThreads over(logits);
  Value row = k.block();
  Memory line =
      rowOf(k, k.argument(at.logits, logits.element), row, logits.columns);
  Memory to =
      rowOf(k, k.argument(at.result, logits.element), row, logits.columns);
  Value target = k.load(k.argument(at.targets, i32), row);
  auto fill = [&] {
    over.overChunks(k, {}, [&](ArrayRef<Value> starts, ValueRange) {
      for (Value start : starts)
        k.store(k.splat(0.0f, over.width), to, start);
      return SmallVector<Value>();
    });
  };
  auto derive = [&] {
    Value column = target, end;
    if (form.isPart) {
      Value offset = k.load(k.argument(form.offset, i32), k.i32(0));
      column = k.sub(target, offset);
      end = logits.end(k, offset);
    }
    Value total = known ? known : k.load(k.argument(at.logsumexp, f32), row);
    Value cotangent = k.load(k.argument(at.cotangent, f32), k.i32(0));
    // The target's thread alone overwrites the target's column. It reads it
    // before.
    Value owner = k.rem(k.div(column, over.width), over.threads);
    Value isOwner = k.both(k.isWithin(column, logits.columns),
                           k.isEqual(owner, k.thread()));
    Value own = k.choose(
        isOwner, [&] { return k.load(line, column); },
        [&] { return k.f32(0.0f); });
    own = k.exp(k.subf(own, total));
    Value ofRow = cotangent; // factor of the probabilities
    if (form.hasRows) {
      ofRow = k.addf(cotangent, k.load(k.argument(form.rows(), f32), row));
      own = k.subf(k.mulf(ofRow, own), cotangent);
    } else {
      own = k.mulf(cotangent, k.subf(own, k.f32(1.0f)));
    }
    over.overChunks(k, {}, [&](ArrayRef<Value> starts, ValueRange) {
      SmallVector<Value> chunks;
      for (Value start : starts)
        chunks.push_back(k.loadVector(line, start, over.width));
      for (auto [start, x] : llvm::zip(starts, chunks)) {
        Value weight = k.exp(k.subf(x, k.splat(total, over.width)));
        Value result = k.mulf(k.splat(ofRow, over.width), weight);
        if (end)
          result = k.before(end, start, result, 0.0f);
        k.store(result, to, start);
      }
      return SmallVector<Value>();
    });
    k.when(isOwner, [&] { k.store(own, to, column); });
  };
  k.branch(k.isLess(target, k.i32(0)), fill, derive);
}

using Kind = KernelArgument::Kind;

/// planLosses with a kernel that adds `rows` losses.
FailureOr<KernelPlan> planLoss(Operation *op, FailureOr<std::string> rowLoss,
                               int64_t rows, KernelLibrary &library) {
  FailureOr<std::string> lossSum = emitGpuKernel(
      library, op->getLoc(), "cross_entropy_sum", std::to_string(rows), 4,
      /*blocks=*/1, kSumThreads, [&](GpuBuilder &k) { emitLossSum(k, rows); });
  return planLosses(rowLoss, lossSum, rows);
}

/// A kernel with a block for each row of logits.
FailureOr<std::string> emitRows(KernelLibrary &library, Operation *op,
                                StringRef prefix, const Logits &logits,
                                StringRef form, unsigned arguments,
                                llvm::function_ref<void(GpuBuilder &k)> body) {
  std::string key = (Twine(logits.rows) + "x" + logits.key() + form).str();
  return emitGpuKernel(library, op->getLoc(), prefix, key, arguments,
                       logits.rows, RowThreads(logits).threads, body);
}

} // namespace

static FailureOr<KernelPlan> planCrossEntropy(mlir::rota::CrossEntropyOp op,
                                              KernelLibrary &library) {
  Logits logits(op.getLogits());
  return planLoss(op,
                  emitRows(library, op, "cross_entropy", logits,
                           /*form=*/"", 4,
                           [&](GpuBuilder &k) { emitRowLoss(k, logits); }),
                  logits.rows, library);
}

static FailureOr<KernelPlan>
planCrossEntropyMerge(mlir::rota::CrossEntropyMergeOp op,
                      KernelLibrary &library) {
  Logits parts(op.getParts());
  std::string key = std::to_string(parts.rows) + "x" + parts.key();
  return planLoss(
      op,
      emitEach(library, op->getLoc(), "cross_entropy_merge", key, 4, parts.rows,
               [&](GpuBuilder &k, Value row) { emitMerge(k, parts, row); }),
      parts.rows, library);
}

static FailureOr<KernelPlan>
planCrossEntropyShard(mlir::rota::CrossEntropyShardOp op,
                      KernelLibrary &library) {
  Logits logits(op.getLogits(), op.getVocabulary());
  FailureOr<std::string> symbol =
      emitRows(library, op, "cross_entropy_shard", logits, /*form=*/"", 4,
               [&](GpuBuilder &k) { emitShard(k, logits); });
  return planCall(symbol, logits.rows, 1, /*operands=*/3);
}

static FailureOr<KernelPlan>
planCrossEntropyGrad(mlir::rota::CrossEntropyGradOp op,
                     KernelLibrary &library) {
  Logits logits(op.getLogits(), op.getVocabulary());
  CrossEntropyGradient form(op);
  FailureOr<std::string> symbol = emitRows(
      library, op, "cross_entropy_grad", logits, form.key(), form.arguments(),
      [&](GpuBuilder &k) { emitGradient(k, logits, form); });
  return form.plan(symbol, logits.rows);
}

/// Both in one kernel: a row that a block reads for the second time comes from
/// a cache. Bits are those of the two kernels.
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
               [&](GpuBuilder &k) {
                 Value total = emitRowLoss(k, logits);
                 // The first thread has read the target's logit.
                 k.barrier();
                 emitGradient(k, logits, form, {4, 0, 1, 2, 5}, total);
               });
  FailureOr<KernelPlan> plan = planLoss(loss, rows, logits.rows, library);
  if (failed(plan))
    return failure();
  // The cotangent is the first operand of the second op.
  unsigned cotangent = loss->getNumOperands(), result = loss->getNumResults();
  plan->calls[0].arguments.push_back({Kind::Operand, cotangent});
  plan->calls[0].arguments.push_back({Kind::Result, result});
  return plan;
}

void addGpuCrossEntropyEmitters(KernelEmitters &emitters) {
  emitters.add<planCrossEntropy>();
  emitters.add<planCrossEntropyGrad>();
  emitters.add<planCrossEntropyShard>();
  emitters.add<planCrossEntropyMerge>();
  emitters.addPair<planCrossEntropyBoth>();
}

} // namespace rota::lowering
