// SPDX-License-Identifier: Apache-2.0
//
// Rows whose code serves every device (lowering/kernels/RowBuilder.h), on a
// GPU: a block does a row. A vector is one chunk of the row.
#include "lowering/gpu/GpuEmitters.h"
#include "lowering/gpu/KeyCounters.h"
#include "lowering/gpu/rows/ChunkWalk.h"
#include "lowering/kernels/Emit.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <cmath>
#include <numeric>

using namespace mlir;

namespace rota::lowering {
namespace {

/// Keys that a thread loads before it counts them.
constexpr int64_t kInFlight = 4;
/// Warps of a block where each does a row.
constexpr int64_t kRowsOfBlock = 4;
/// Counters of keys in all warps of a block: 64 KB.
constexpr int64_t kMostCounters = 16 * 1024;

class GpuRows : public RowBuilder {
public:
  /// A block of `threads` threads does a row. Walks take `group` chunks at a
  /// time.
  GpuRows(GpuBuilder &g, int64_t chunk, int64_t threads, int64_t group)
      : RowBuilder(g.ops()), g(g), chunk(chunk), threads(threads), group(group),
        thread(g.widen(g.thread())) {}
  /// Each warp of a block does a row.
  GpuRows(GpuBuilder &g, int64_t chunk)
      : RowBuilder(g.ops()), g(g), chunk(chunk), threads(kWarp),
        rowsOfBlock(kRowsOfBlock), thread(g.widen(g.rem(g.thread(), kWarp))) {}
  /// This thread has the vector of a row that begins at column `alone`.
  GpuRows(GpuBuilder &g, int64_t chunk, Value alone)
      : RowBuilder(g.ops()), g(g), chunk(chunk), alone(alone) {}

  Memory argument(unsigned i, Type element) override {
    return g.argument(i, element);
  }
  Memory local(int64_t elements, Type element) override {
    int64_t size = element.getIntOrFloatBitWidth() / 8;
    int64_t ofRow = llvm::alignTo(elements, kAccessBytes / size);
    Memory all = g.allocateShared(ofRow * rowsOfBlock, element);
    return rowsOfBlock == 1
               ? all
               : g.offset(all, g.mul(g.div(g.thread(), kWarp), ofRow));
  }

  void each(int64_t count, Body body) override {
    loop(thread, i64(count), threads, body);
  }
  void once(llvm::function_ref<void()> body) override {
    if (alone)
      return body();
    when(isEqual(thread, i64(0)), body);
  }
  void sync() override {
    if (rowsOfBlock > 1)
      NVVM::SyncWarpOp::create(b, g.i32(-1));
    else
      g.barrier();
  }

  void rankKeys(Memory keys, int64_t count, int64_t keyCount, Memory totals,
                llvm::function_ref<void()> counted, RankBody visit) override;

  int64_t lanes() const override { return chunk; }
  void overColumns(int64_t width, ColumnsBody body) override {
    assert(width % chunk == 0 && "rows with gaps are walked");
    if (alone)
      return body(alone, {chunk});
    loop(mul(thread, chunk), i64(width), threads * chunk,
         [&](Value first) { body(first, {chunk}); });
  }
  void walkColumns(int64_t width, WalkBody body) override {
    auto each = [&](ArrayRef<Value> firsts, int64_t count, ValueRange) {
      SmallVector<Value> wide;
      for (Value first : firsts)
        wide.push_back(g.widen(first));
      body(wide, SmallVector<int64_t>(wide.size(), count));
      return SmallVector<Value>();
    };
    walk(width).run(g, {}, each);
  }
  Value loadOwn(Memory line, Value column, int64_t width) override {
    return choose(
        isOwner(column, width), [&] { return load(line, column); },
        [&] { return f32(0.0f); });
  }
  void storeOwn(Value value, Memory line, Value column,
                int64_t width) override {
    when(isOwner(column, width), [&] { store(value, line, column); });
  }
  Value foldColumns(int64_t width, Value initial, FoldBody body) override {
    assert(width % chunk == 0 && "rows with gaps are walked");
    if (alone)
      return body(alone, chunk, initial);
    return loop(mul(thread, chunk), i64(width), threads * chunk, initial,
                [&](Value at, ValueRange carried) -> SmallVector<Value> {
                  return {body(at, chunk, carried[0])};
                })[0];
  }

  Value loadVector(Memory memory, Value index, int64_t count,
                   float filler) override {
    return g.loadPart(memory, index, count, chunk, filler);
  }
  std::pair<Value, Value> loadPairs(Memory memory, Value index,
                                    int64_t) override {
    Value low = g.loadVector(memory, index, chunk);
    Value high = g.loadVector(memory, add(index, chunk), chunk);
    auto every = [&](int64_t first) -> Value {
      SmallVector<int64_t> elements;
      for (int64_t i = 0; i < chunk; ++i)
        elements.push_back(2 * i + first);
      return vector::ShuffleOp::create(b, low, high, elements);
    };
    return {every(0), every(1)};
  }
  void storeVector(Value value, Memory memory, Value index,
                   int64_t count) override {
    g.storePart(value, memory, index, count);
  }
  Value before(Value end, Value index, Value value, float filler) override {
    return g.before(g.narrow(end), g.narrow(index), value, filler);
  }
  void copyRow(Memory from, Memory to, int64_t width) override {
    overColumns(width, [&](Value at, ArrayRef<int64_t>) {
      lowering::store(
          b,
          lowering::load(b, from.base, from.element, at, chunk, kAccessBytes),
          to.base, at, kAccessBytes);
    });
  }
  void clearRow(Memory to, int64_t width) override {
    overColumns(width, [&](Value at, ArrayRef<int64_t>) {
      g.store(splat(0.0f), to, at);
    });
  }

  Value splat(float value) override { return g.splat(value, chunk); }
  Value broadcast(Value scalar) override { return g.splat(scalar, chunk); }
  Value exp(Value value) override { return g.exp(value); }
  Value sumOfRow(Value vector) override {
    return combine(vector, [&](Value x, Value y) { return addf(x, y); });
  }
  Value maxOfRow(Value vector) override {
    return combine(vector, [&](Value x, Value y) { return maxf(x, y); });
  }
  Value logSumExp(Memory line, int64_t width, Value end) override {
    return emitLogSumExp(g, walk(width), line, end ? g.narrow(end) : end);
  }
  SmallVector<Value> sumEach(int64_t count, ValueRange zeros,
                             CarryBody body) override {
    SmallVector<Value> sums = loop(thread, i64(count), threads, zeros, body);
    for (Value &sum : sums)
      sum = g.sumByHalves(sum, threads, /*across=*/1);
    return sums;
  }
  Value largestOf(Memory values, int64_t count) override;

private:
  ChunkWalk walk(int64_t width) const {
    return {chunk, width / chunk, threads, group, width % chunk};
  }
  /// Whether the column lies in the row and this thread has it.
  Value isOwner(Value column, int64_t width) {
    return both(isWithin(column, width),
                isEqual(walk(width).ownerOf(g, g.narrow(column)), g.thread()));
  }
  Value combine(Value vector, llvm::function_ref<Value(Value, Value)> join) {
    return combineThreads({g.combineElements(vector, join)},
                          [&](ValueRange left, ValueRange right) {
                            return SmallVector<Value>{join(left[0], right[0])};
                          })[0];
  }
  SmallVector<Value> combineThreads(ValueRange values,
                                    GpuBuilder::Combiner join) {
    SmallVector<Value> result = g.combineThreads(values, threads, join);
    if (threads > kWarp)
      sync(); // The next time writes to the same memory.
    return result;
  }

  GpuBuilder &g;
  int64_t chunk, threads = 1, group = 1, rowsOfBlock = 1;
  Value thread, alone; // i64
};

void GpuRows::rankKeys(Memory keys, int64_t count, int64_t keyCount,
                       Memory totals, llvm::function_ref<void()> counted,
                       RankBody visit) {
  int64_t range = llvm::PowerOf2Ceil(keyCount);
  int64_t warps =
      std::clamp<int64_t>(kMostCounters / range, 1, threads / kWarp);
  // A warp has neighbouring keys, and each of its loads those of all lanes.
  int64_t ofStep = kWarp * kInFlight;
  int64_t ofWarp = llvm::alignTo(llvm::divideCeil(count, warps), ofStep);
  KeyCounters counters(g, range, warps);
  Value first = add(mul(counters.warp(), ofWarp), counters.lane());
  auto walkKeys = [&](RankBody visitKey) {
    loop(i32(0), i32(ofWarp), ofStep, [&](Value begin) {
      SmallVector<Value> numbers, loaded;
      for (int64_t i = 0; i < kInFlight; ++i) {
        numbers.push_back(add(add(first, begin), i * kWarp));
        loaded.push_back(load(keys, min(numbers[i], i32(count - 1))));
      }
      for (auto [number, key] : llvm::zip(numbers, loaded)) {
        Value isKey = both(isWithin(number, count), isWithin(key, keyCount));
        auto visitRank = [&](Value rank) {
          visitKey(g.widen(number), g.widen(key), g.widen(rank));
        };
        counters.add(select(isKey, key, i32(range)),
                     visitKey ? KeyCounters::Visit(visitRank) : nullptr);
      }
    });
  };
  counters.clear(threads);
  sync();
  walkKeys(nullptr);
  sync();
  each(keyCount, [&](Value key) {
    Value own = g.narrow(key);
    store(counters.sum(own), totals, key);
    if (visit)
      counters.startAt(own, i32(0));
  });
  if (!visit)
    return;
  sync();
  counted();
  sync();
  walkKeys(visit);
}

Value GpuRows::largestOf(Memory values, int64_t count) {
  // Numbers of elements are exact in f32, as which threads exchange them.
  Type f32Type = b.getF32Type();
  auto best = loop(thread, i64(count), threads, {f32(-INFINITY), f32(0.0f)},
                   [&](Value i, ValueRange best) {
                     Value number = arith::SIToFPOp::create(b, f32Type, i);
                     return better(best, load(values, i), number);
                   });
  auto join = [&](ValueRange left, ValueRange right) -> SmallVector<Value> {
    auto less = [&](Value x, Value y) -> Value {
      return arith::CmpFOp::create(b, arith::CmpFPredicate::OLT, x, y);
    };
    Value equal =
        arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, left[0], right[0]);
    Value isRight =
        either(less(left[0], right[0]), both(equal, less(right[1], left[1])));
    return {select(isRight, right[0], left[0]),
            select(isRight, right[1], left[1])};
  };
  return arith::FPToSIOp::create(b, b.getI64Type(),
                                 combineThreads(best, join)[1]);
}

} // namespace

FailureOr<std::string>
emitGpuRows(KernelLibrary &library, Location loc, StringRef prefix,
            StringRef key, unsigned arguments, const RowForm &space,
            llvm::function_ref<void(RowBuilder &k, Value row)> body) {
  int64_t stride = space.stride ? space.stride : space.columns;
  int64_t chunk = chunkWidth(std::gcd(stride, space.begin), space.bits);
  int64_t chunks = space.columns / chunk;
  std::string whole = (key + " of " + Twine(space.rows)).str();
  if (space.alone || (space.mayBeAlone && chunks == 1))
    return emitEach(library, loc, prefix, whole, arguments, space.rows * chunks,
                    [&](GpuBuilder &g, Value number) {
                      Value column = g.mul(g.rem(number, chunks), chunk);
                      GpuRows k(g, chunk, g.widen(column));
                      body(k, g.widen(g.div(number, chunks)));
                    });
  if (space.ofWarp)
    return emitGpuKernel(
        library, loc, prefix, whole, arguments,
        llvm::divideCeil(space.rows, kRowsOfBlock), kRowsOfBlock * kWarp,
        [&](GpuBuilder &g) {
          Value warp = g.div(g.thread(), kWarp);
          Value row = g.widen(g.add(g.mul(g.block(), kRowsOfBlock), warp));
          GpuRows k(g, chunk);
          if (space.rows % kRowsOfBlock == 0)
            body(k, row);
          else
            g.when(g.isLess(row, g.i64(space.rows)), [&] { body(k, row); });
        });
  int64_t threads = llvm::PowerOf2Ceil(chunks), group = 1;
  if (space.inFlight) {
    threads =
        llvm::alignTo(llvm::divideCeil(space.columns, space.inFlight), kWarp);
    group = space.inFlight / chunk;
  }
  threads = std::clamp(threads, kWarp, space.most);
  return emitGpuKernel(library, loc, prefix, whole, arguments, space.rows,
                       threads, [&](GpuBuilder &g) {
                         GpuRows k(g, chunk, threads, group);
                         body(k, g.widen(g.block()));
                       });
}

} // namespace rota::lowering
