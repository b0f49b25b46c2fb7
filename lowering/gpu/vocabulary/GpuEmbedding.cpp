// SPDX-License-Identifier: Apache-2.0
//
// The derivative of embedding sorts the tokens by row first, by counting: a
// block has a range of rows and finds the tokens of that range, a thread of it
// those of one row. Then a block adds the cotangents of one row, tokens in
// ascending order. No two threads add to one element, and the sums have the
// order of the CPU. Tokens that have no row add nothing.
#include "lowering/gpu/GpuBuilder.h"
#include "lowering/kernels/Emit.h"
#include "lowering/kernels/TokenShapes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;

namespace rota::lowering {
namespace {

/// Rows of the table that one block sorts tokens into, one a thread.
constexpr int64_t kRange = 256;
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

/// Finds the tokens of the block's range, a tile of tokens at a time.
class RangeScan {
public:
  RangeScan(GpuBuilder &k, const EmbeddingTable &table)
      : k(k), table(table), tokens(k.argument(0, k.ops().getI32Type())),
        counts(k.allocateShared(kWarps, k.ops().getI32Type())),
        rows(k.allocateShared(kRange, k.ops().getI32Type())),
        numbers(k.allocateShared(kRange, k.ops().getI32Type())),
        thread(k.thread()), firstRow(k.mul(k.block(), kRange)) {}

  /// The row of this thread.
  Value row() { return k.add(firstRow, thread); }

  /// Calls visit(number, carried) with every token of this thread's row, in
  /// ascending order, and count(isBelow, carried) with a token of the tile,
  /// whether its row is before the block's range.
  using Visit = llvm::function_ref<Value(Value number, Value carried)>;
  using Count = llvm::function_ref<Value(Value isBelow, Value carried)>;
  std::pair<Value, Value> run(Value mine, Visit visit, Value below,
                              Count count) {
    int64_t tiles = llvm::divideCeil(table.count, kRange);
    SmallVector<Value> last =
        k.loop(k.i32(0), k.i32(tiles), 1, {mine, below},
               [&](Value tile, ValueRange carried) {
                 Value number = k.add(k.mul(tile, kRange), thread);
                 auto [local, isBelow] = locate(number);
                 Value found = compact(local, number);
                 Value next = visitOwn(found, carried[0], visit);
                 return SmallVector<Value>{next, count(isBelow, carried[1])};
               });
    return {last[0], last[1]};
  }

private:
  static constexpr int64_t kWarps = kRange / kWarp;

  /// The number of the token's row in the range, and whether the row is before
  /// the range.
  std::pair<Value, Value> locate(Value number) {
    Value last = k.min(number, k.i32(table.count - 1));
    Value row = rowOf(k, table, k.load(tokens, last), /*offset=*/3);
    Value valid = k.isWithin(row, table.vocabulary);
    if (table.count % kRange != 0)
      valid = k.both(valid, k.isWithin(number, table.count));
    Value isBelow = k.both(valid, k.isLess(row, firstRow));
    // No row of the range is as large.
    return {k.select(valid, k.sub(row, firstRow), k.i32(kRange)), isBelow};
  }

  /// Writes the tokens of the range one after the other to shared memory, in
  /// order; returns how many there are. The first barrier of the next tile is
  /// after all reads of this one's.
  Value compact(Value local, Value number) {
    ImplicitLocOpBuilder &b = k.ops();
    Value inRange = k.isWithin(local, kRange);
    Value lane = k.rem(thread, kWarp), warp = k.div(thread, kWarp);
    Value ballot = NVVM::VoteSyncOp::create(
        b, b.getI32Type(), k.i32(-1), inRange, NVVM::VoteSyncKind::ballot);
    Value lower = k.sub(arith::ShLIOp::create(b, k.i32(1), lane), k.i32(1));
    Value before = countBits(k.both(ballot, lower));
    k.when(k.isEqual(lane, k.i32(0)),
           [&] { k.store(countBits(ballot), counts, warp); });
    k.barrier();
    Value total = k.i32(0);
    for (int64_t i = 0; i < kWarps; ++i) {
      Value ofWarp = k.load(counts, k.i32(i));
      before =
          k.add(before, k.select(k.isLess(k.i32(i), warp), ofWarp, k.i32(0)));
      total = k.add(total, ofWarp);
    }
    k.when(inRange, [&] {
      k.store(local, rows, before);
      k.store(number, numbers, before);
    });
    k.barrier();
    return total;
  }

  Value countBits(Value bits) {
    ImplicitLocOpBuilder &b = k.ops();
    return LLVM::CtPopOp::create(b, bits.getType(), bits);
  }

  Value visitOwn(Value found, Value initial, Visit visit) {
    return k.loop(
        k.i32(0), found, 1, initial, [&](Value i, ValueRange carried) {
          Value isOwn = k.isEqual(k.load(rows, i), thread);
          return SmallVector<Value>{k.choose(
              isOwn, [&] { return visit(k.load(numbers, i), carried[0]); },
              [&] { return carried[0]; })};
        })[0];
  }

  GpuBuilder &k;
  const EmbeddingTable &table;
  Memory tokens, counts, rows, numbers;
  Value thread, firstRow;
};

/// The sum of `value` in the threads up to this one, in a block of kRange.
Value sumUpToHere(GpuBuilder &k, Value value) {
  Memory shared = k.allocateShared(2 * kRange, k.ops().getI32Type());
  Value thread = k.thread();
  Value sum = value;
  k.store(sum, shared, thread);
  int64_t turn = 0;
  for (int64_t distance = 1; distance < kRange; distance *= 2, turn ^= 1) {
    k.barrier();
    Memory from = k.offset(shared, k.i32(turn * kRange));
    Value hasOther = k.isLess(k.i32(distance - 1), thread);
    Value other = k.choose(
        hasOther, [&] { return k.load(from, k.add(thread, -distance)); },
        [&] { return k.i32(0); });
    sum = k.add(sum, other);
    k.store(sum, k.offset(shared, k.i32((1 - turn) * kRange)), thread);
  }
  return sum;
}

/// Arguments: tokens, order, starts, offset of a part. The tokens of row r are
/// order[starts[r]] to order[starts[r + 1] - 1].
void emitSort(GpuBuilder &k, const EmbeddingTable &table) {
  Type i32 = k.ops().getI32Type();
  Memory order = k.argument(1, i32), starts = k.argument(2, i32);
  RangeScan scan(k, table);
  auto [mine, below] = scan.run(
      k.i32(0), [&](Value, Value count) { return k.add(count, 1); }, k.i32(0),
      [&](Value isBelow, Value count) {
        return k.add(count, k.select(isBelow, k.i32(1), k.i32(0)));
      });
  Value end = sumUpToHere(k, mine);
  // The first thread's sum of all threads, for everyone.
  Value allBelow = k.sumByHalves(below, kRange, /*across=*/1);
  Memory shared = k.allocateShared(1, i32);
  k.when(k.isEqual(k.thread(), k.i32(0)),
         [&] { k.store(allBelow, shared, k.i32(0)); });
  k.barrier();
  end = k.add(end, k.load(shared, k.i32(0)));
  Value start = k.sub(end, mine);
  k.when(k.isWithin(scan.row(), table.vocabulary),
         [&] { k.store(start, starts, scan.row()); });
  k.when(k.isEqual(scan.row(), k.i32(table.vocabulary - 1)),
         [&] { k.store(end, starts, k.i32(table.vocabulary)); });
  scan.run(
      start,
      [&](Value number, Value place) {
        k.store(number, order, place);
        return k.add(place, 1);
      },
      k.i32(0), [&](Value, Value nothing) { return nothing; });
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
  FailureOr<std::string> sort = emitGpuKernel(
      library, op->getLoc(), "embedding_sort", sorted, 3 + table.isPart,
      llvm::divideCeil(table.vocabulary, kRange), kRange,
      [&](GpuBuilder &k) { emitSort(k, table); });
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
