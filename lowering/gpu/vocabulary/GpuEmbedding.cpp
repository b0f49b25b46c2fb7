// SPDX-License-Identifier: Apache-2.0
//
// The derivative of embedding sorts the tokens by row first, by counting: a
// block has a range of rows, and each of its warps a part of the tokens, of
// which it counts those of each row. From the counts follow the places of each
// warp's tokens. Then a block adds the cotangents of one row, tokens in
// ascending order. No two threads add to one element, and the sums have the
// order of the CPU. Tokens that have no row add nothing.
#include "lowering/gpu/KeyCounters.h"
#include "lowering/kernels/Emit.h"
#include "lowering/kernels/TokenShapes.h"

using namespace mlir;

namespace rota::lowering {
namespace {

/// Rows of the table that one block sorts tokens into, a power of two.
constexpr int64_t kRange = 256;
/// Threads that sort, powers of two: one for each row of the range at least.
constexpr int64_t kLeastSorting = kRange, kMostSorting = 512;
/// Tokens that a thread loads before it sorts them.
constexpr int64_t kTokensInFlight = 8;
/// Threads that add cotangents to a row at most.
constexpr int64_t kMostThreads = 512;
/// Cotangents that a thread loads before it adds them.
constexpr int64_t kInFlight = 4;

/// The row of the table of a token, less than zero or beyond the table where
/// there is none. Argument `offset` is that of a part.
Value rowOf(GpuBuilder &k, const EmbeddingTable &table, Value token,
            unsigned offset) {
  if (!table.isPart)
    return token;
  Memory first = k.argument(offset, k.ops().getI32Type());
  return k.sub(token, k.load(first, k.i32(0)));
}

//===----------------------------------------------------------------------===//
// Sorted tokens
//===----------------------------------------------------------------------===//

/// The tokens of the block's range. Each warp walks over its own part of all
/// tokens, 32 at a time.
class RangeSort {
public:
  RangeSort(GpuBuilder &k, const EmbeddingTable &table, int64_t threads)
      : k(k), table(table), warps(threads / kWarp),
        part(llvm::alignTo(llvm::divideCeil(table.count, warps),
                           kWarp * kTokensInFlight)),
        tokens(k.argument(0, k.ops().getI32Type())), counters(k, kRange, warps),
        firstRow(k.mul(k.block(), kRange)) {}

  Value isOwner() { return k.isWithin(k.thread(), kRange); }
  /// The row of this thread, if it is an owner.
  Value row() { return k.add(firstRow, k.thread()); }

  void clear() { counters.clear(warps * kWarp); }

  /// Adds the tokens of the warp's part to its counters. Calls
  /// visit(number, place) for each of the range: its place is the counter
  /// before this token. Returns this thread's count of tokens whose row is
  /// before the range.
  using Visit = llvm::function_ref<void(Value number, Value place)>;
  Value walk(Visit visit) {
    Value first = k.add(k.mul(counters.warp(), part), counters.lane());
    return k.loop(k.i32(0), k.i32(part), kWarp * kTokensInFlight, k.i32(0),
                  [&](Value begin, ValueRange carried) {
                    SmallVector<Value> numbers, loaded;
                    for (int64_t i = 0; i < kTokensInFlight; ++i) {
                      numbers.push_back(k.add(k.add(first, begin), i * kWarp));
                      Value last = k.min(numbers[i], k.i32(table.count - 1));
                      loaded.push_back(k.load(tokens, last));
                    }
                    Value below = carried[0];
                    for (auto [number, token] : llvm::zip(numbers, loaded)) {
                      auto [local, isBelow] = locate(number, token);
                      below =
                          k.add(below, k.select(isBelow, k.i32(1), k.i32(0)));
                      addTokens(local, number, visit);
                    }
                    return SmallVector<Value>{below};
                  })[0];
  }

  /// The tokens of this thread's row; 0 where it is no owner.
  Value countOfRow() {
    return k.choose(
        isOwner(), [&] { return counters.sum(k.thread()); },
        [&] { return k.i32(0); });
  }
  /// Turns the counts of this thread's row into places from `start` on.
  void place(Value start) {
    k.when(isOwner(), [&] { counters.startAt(k.thread(), start); });
  }

private:
  /// The number of the token's row in the range, kRange or a negative one
  /// outside, and whether the row is before the range.
  std::pair<Value, Value> locate(Value number, Value token) {
    Value row = rowOf(k, table, token, /*offset=*/3);
    Value valid = k.isWithin(row, table.vocabulary);
    if (table.count % (warps * part) != 0)
      valid = k.both(valid, k.isWithin(number, table.count));
    Value isBelow = k.both(valid, k.isLess(row, firstRow));
    return {k.select(valid, k.sub(row, firstRow), k.i32(kRange)), isBelow};
  }

  /// Adds one token of each lane, ascending. Most have none of the range.
  void addTokens(Value local, Value number, Visit visit) {
    auto visitToken = [&](Value place) { visit(number, place); };
    counters.add(local, visit ? KeyCounters::Visit(visitToken) : nullptr);
  }

  GpuBuilder &k;
  const EmbeddingTable &table;
  int64_t warps, part; // tokens of a warp
  Memory tokens;
  KeyCounters counters;
  Value firstRow;
};

/// Arguments: tokens, order, starts, offset of a part. The tokens of row r are
/// order[starts[r]] to order[starts[r + 1] - 1].
void emitSort(GpuBuilder &k, const EmbeddingTable &table, int64_t threads) {
  Type i32 = k.ops().getI32Type();
  Memory order = k.argument(1, i32), starts = k.argument(2, i32);
  RangeSort sort(k, table, threads);
  sort.clear();
  k.barrier();
  Value below = sort.walk(nullptr);
  k.barrier();
  Value mine = sort.countOfRow();
  Value end = k.sumUpToHere(mine, threads);
  // The first thread's sum of all threads, for everyone.
  Value allBelow = k.sumByHalves(below, threads, /*across=*/1);
  Memory shared = k.allocateShared(1, i32);
  k.when(k.isEqual(k.thread(), k.i32(0)),
         [&] { k.store(allBelow, shared, k.i32(0)); });
  k.barrier();
  end = k.add(end, k.load(shared, k.i32(0)));
  Value start = k.sub(end, mine);
  Value row = sort.row();
  k.when(k.both(sort.isOwner(), k.isWithin(row, table.vocabulary)),
         [&] { k.store(start, starts, row); });
  k.when(k.both(sort.isOwner(), k.isEqual(row, k.i32(table.vocabulary - 1))),
         [&] { k.store(end, starts, k.i32(table.vocabulary)); });
  sort.place(start);
  k.barrier();
  sort.walk([&](Value number, Value place) { k.store(number, order, place); });
}

/// A thread has tokens in flight, where there are enough of them.
int64_t sortingThreads(const EmbeddingTable &table) {
  return std::clamp<int64_t>(llvm::PowerOf2Ceil(table.count / kTokensInFlight),
                             kLeastSorting, kMostSorting);
}

//===----------------------------------------------------------------------===//
// Sums of cotangents
//===----------------------------------------------------------------------===//

/// Arguments: order, starts, cotangents, result. A block does a row.
void emitGradient(GpuBuilder &k, const EmbeddingTable &table, Type element,
                  bool accumulate, int64_t threads) {
  Type i32 = k.ops().getI32Type(), f32 = k.ops().getF32Type();
  Memory order = k.argument(0, i32), starts = k.argument(1, i32);
  Memory cotangents = k.argument(2, element), result = k.argument(3, f32);
  int64_t width = chunkWidth(table.columns, element);
  Value row = k.block();
  Value start = k.load(starts, row), end = k.load(starts, k.add(row, 1));
  Value whole =
      k.add(start, k.mul(k.div(k.sub(end, start), kInFlight), kInFlight));
  auto addColumns = [&](Value chunk) {
    Value column = k.mul(k.widen(chunk), width);
    Value at = k.add(k.mul(k.widen(row), table.columns), column);
    auto addTokens = [&](Value from, Value to, int64_t count, Value sum) {
      return k.loop(from, to, count, sum, [&](Value i, ValueRange carried) {
        SmallVector<Value> loaded;
        for (int64_t next = 0; next < count; ++next) {
          Value token = k.widen(k.load(order, k.add(i, next)));
          loaded.push_back(k.loadVector(
              cotangents, k.add(k.mul(token, table.columns), column), width));
        }
        Value total = carried[0];
        for (Value mine : loaded)
          total = k.addf(total, mine);
        return SmallVector<Value>{total};
      })[0];
    };
    Value sum =
        accumulate ? k.loadVector(result, at, width) : k.splat(0.0f, width);
    sum = addTokens(start, whole, kInFlight, sum);
    k.store(addTokens(whole, end, 1, sum), result, at);
  };
  auto addRow = [&] {
    k.loop(k.thread(), k.i32(table.columns / width), threads, addColumns);
  };
  if (accumulate)
    k.when(k.isLess(start, end), addRow);
  else
    addRow();
}

} // namespace

static FailureOr<KernelPlan> planEmbeddingGrad(mlir::rota::EmbeddingGradOp op,
                                               ArrayRef<bool> accumulated,
                                               KernelLibrary &library) {
  bool accumulate = accumulated.front();
  EmbeddingTable table(op.getTokens(), op.getResult(), op.getOffset());
  Type element = op.getCotangent().getType().getElementType();
  std::string sorted = std::to_string(table.count) + "x" +
                       std::to_string(table.vocabulary) +
                       (table.isPart ? " part" : "");
  int64_t sorting = sortingThreads(table);
  FailureOr<std::string> sort = emitGpuKernel(
      library, op->getLoc(), "embedding_sort", sorted, 3 + table.isPart,
      llvm::divideCeil(table.vocabulary, kRange), sorting,
      [&](GpuBuilder &k) { emitSort(k, table, sorting); });
  int64_t chunks = table.columns / chunkWidth(table.columns, element);
  int64_t threads =
      std::min<int64_t>(llvm::alignTo(chunks, kWarp), kMostThreads);
  std::string key;
  llvm::raw_string_ostream(key)
      << table.count << 'x' << table.vocabulary << 'x' << table.columns << 'x'
      << element << (accumulate ? " added" : "");
  FailureOr<std::string> sum =
      emitGpuKernel(library, op->getLoc(), "embedding_grad", key, 4,
                    table.vocabulary, threads, [&](GpuBuilder &k) {
                      emitGradient(k, table, element, accumulate, threads);
                    });
  if (failed(sort) || failed(sum))
    return failure();
  using Kind = KernelArgument::Kind;
  KernelPlan plan;
  plan.temporaries = {table.count * 4, (table.vocabulary + 1) * 4};
  KernelArgument order{Kind::Temporary, 0}, starts{Kind::Temporary, 1};
  plan.calls.push_back(
      {*sort, table.count, 1, {{Kind::Operand, 0}, order, starts}});
  table.addOffset(plan.calls.back());
  plan.calls.push_back(
      {*sum,
       table.vocabulary,
       1,
       {order, starts, {Kind::Operand, 1}, {Kind::Result, 0}}});
  return plan;
}

void addEmbeddingRowsEmitters(KernelEmitters &emitters);

void addGpuEmbeddingEmitters(KernelEmitters &emitters) {
  addEmbeddingRowsEmitters(emitters);
  emitters.add<planEmbeddingGrad>();
}

} // namespace rota::lowering
