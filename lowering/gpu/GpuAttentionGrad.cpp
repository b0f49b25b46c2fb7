// SPDX-License-Identifier: Apache-2.0
//
// Attention, backward, on a GPU's f32 units (Dao et al. 2022, algorithm 4), in
// three kernels: delta, the sum of output times cotangent of each query; the
// cotangents of keys and values, by blocks of keys that walk over their query
// heads and then queries, ascending; the queries' cotangents, by blocks of
// queries that walk over keys, ascending. The two compute the probabilities
// again, and each sum has one writer and one order.
#include "lowering/gpu/GpuAttentionCode.h"

#include "llvm/Support/MathExtras.h"

#include <numbers>

using namespace mlir;

namespace rota::lowering {
namespace {

using Values = GpuAttentionCode::Values;

/// Two sums and two tiles must fit into registers and 163 KiB.
AttentionBlock blockOf(const AttentionShape &shape) {
  if (shape.size <= 64)
    return {64, 64};
  return {shape.size <= 128 ? 64 : 32, 32};
}

//===----------------------------------------------------------------------===//
// Delta
//===----------------------------------------------------------------------===//

/// Threads of one row, and the elements of one access.
struct DeltaGeometry {
  static constexpr int64_t kThreads = 256;

  explicit DeltaGeometry(const AttentionShape &shape)
      : width(chunkWidth(shape.size, shape.element)),
        chunks(shape.size / width),
        threads(std::min<int64_t>(llvm::PowerOf2Ceil(chunks), kWarp)),
        rows(shape.batch * shape.sequence * shape.heads),
        blocks(llvm::divideCeil(rows, kThreads / threads)) {}

  int64_t width, chunks, threads, rows, blocks;
};

/// Arguments: cotangent, output, delta.
void emitDelta(GpuBuilder &k, const AttentionShape &shape) {
  DeltaGeometry geometry(shape);
  int64_t rowsPerBlock = DeltaGeometry::kThreads / geometry.threads;
  Value local = k.rem(k.thread(), geometry.threads);
  Value row = k.add(k.mul(k.widen(k.block()), rowsPerBlock),
                    k.widen(k.div(k.thread(), geometry.threads)));
  Value inRange = k.isWithin(row, geometry.rows);
  row = k.select(inRange, row, k.i64(geometry.rows - 1));
  Memory cotangents = k.argument(0, shape.element);
  Memory outputs = k.argument(1, shape.element);
  Value start = k.mul(row, shape.size);
  Value products = k.loop(
      local, k.i32(geometry.chunks), geometry.threads,
      {k.splat(0.0f, geometry.width)}, [&](Value chunk, ValueRange before) {
        Value at = k.add(start, k.mul(k.widen(chunk), geometry.width));
        return Values{k.fma(k.loadVector(cotangents, at, geometry.width),
                            k.loadVector(outputs, at, geometry.width),
                            before[0])};
      })[0];
  Value sum = k.extract(products, 0);
  for (int64_t i = 1; i < geometry.width; ++i)
    sum = k.addf(sum, k.extract(products, i));
  sum =
      k.combineThreads(sum, geometry.threads, [&](ValueRange x, ValueRange y) {
        return Values{k.addf(x[0], y[0])};
      })[0];
  // Rows are [batch, position, head], results [batch, head, position].
  Value position = k.rem(k.div(row, shape.heads), shape.sequence);
  Value head =
      k.add(k.mul(k.div(row, shape.heads * shape.sequence), shape.heads),
            k.rem(row, shape.heads));
  k.when(k.both(inRange, k.isEqual(local, k.i32(0))), [&] {
    k.store(sum, k.argument(2, k.ops().getF32Type()),
            k.add(k.mul(head, shape.sequence), position));
  });
}

//===----------------------------------------------------------------------===//
// Probabilities and their cotangents
//===----------------------------------------------------------------------===//

/// The common part of the two kernels below: scores[own][other] = dot(left,
/// across), and the weights' cotangents = dot(leftCotangent, acrossCotangent).
class GpuBackwardCode {
public:
  GpuBackwardCode(GpuBuilder &k, const AttentionShape &shape)
      : k(k), shape(shape), code(k, shape, blockOf(shape)),
        block(code.block()) {
    if (shape.size > 64)
      leaveRegistersFor(k, /*blocks=*/1);
  }

protected:
  /// The rows of the operands, and of two f32 per query.
  struct Lines {
    Memory logsumexp, delta;
  };

  Memory tensor(unsigned i) { return k.argument(i, shape.element); }
  Lines linesOf(unsigned logsumexp, unsigned delta, Value batch, Value head) {
    Type f32 = k.ops().getF32Type();
    return {code.lineOf(k.argument(logsumexp, f32), batch, head),
            code.lineOf(k.argument(delta, f32), batch, head)};
  }
  /// -log2(e) * logsumexp, and delta, of the query at `position`; one beyond
  /// the sequence repeats the last one.
  std::pair<Value, Value> loadLines(const Lines &lines, Value position) {
    Value read = k.min(position, k.i32(shape.sequence - 1));
    return {k.mulf(k.load(lines.logsumexp, read), k.f32(-std::numbers::log2e)),
            k.load(lines.delta, read)};
  }
  /// exp(score - logsumexp), 0 where the query does not see the key.
  Value weightOf(Value score, Value line, Value sees) {
    return k.select(sees, fastExp2(k, k.addf(score, line)), k.f32(0.0f));
  }
  /// The factor of the rows that are own.
  float baseTwoScale() const {
    return shape.scale * std::numbers::log2e_v<float>;
  }
  void putOwn(SharedTile tile, HeadRows rows, Value first, float factor) {
    code.put(code.fetch(rows, first, block.own, factor), tile);
  }

  GpuBuilder &k;
  AttentionShape shape;
  GpuAttentionCode code;
  AttentionBlock block;
};

//===----------------------------------------------------------------------===//
// Keys and values
//===----------------------------------------------------------------------===//

/// Arguments, in order: those below, then the cotangents of keys and values.
enum Argument : unsigned {
  kCotangent,
  kQuery,
  kKey,
  kValue,
  kLogsumexp,
  kDelta,
  kFirstResult,
};

class KeyCode : GpuBackwardCode {
public:
  using GpuBackwardCode::GpuBackwardCode;

  void emit();

private:
  /// A tile of queries of one head.
  struct Place {
    Value member; // of the group of query heads, i32
    Value query;  // i32
  };
  Place after(Place place);
  Value headOf(Place place) {
    return k.add(k.mul(keyHead, shape.group()), place.member);
  }
  /// This thread's share of the queries and their cotangents at `place`.
  std::pair<Values, Values> fetch(Place place);
  Values emitTile(Place place, ValueRange carried);
  /// The tile's weights, and in `slopes` the scores' cotangents.
  Values emitWeights(Place place, Values &slopes);

  SharedTile keys{}, values{}, queries{}, cotangents{}, weights{};
  Value batch, keyHead;    // i32
  Value first, firstQuery; // of the block, i32
};

void KeyCode::emit() {
  // The blocks with most queries, those with the first keys, come first.
  int64_t heads = shape.batch * shape.keyHeads;
  Value number = k.rem(k.block(), heads);
  batch = k.div(number, shape.keyHeads);
  keyHead = k.rem(number, shape.keyHeads);
  first = k.mul(k.div(k.block(), heads), block.own);
  // Queries before the first key see none of the block.
  firstQuery = first;
  keys = code.allocateRows(block.own);
  values = code.allocateRows(block.own);
  queries = code.allocateRows(block.other);
  cotangents = code.allocateRows(block.other);
  weights = code.allocateWeights();
  putOwn(keys, code.keyRows(tensor(kKey), batch, keyHead), first,
         baseTwoScale());
  putOwn(values, code.keyRows(tensor(kValue), batch, keyHead), first, 1.0f);
  auto [nextQueries, nextCotangents] = fetch({k.i32(0), firstQuery});
  code.put(nextQueries, queries);
  code.put(nextCotangents, cotangents);
  k.barrier();

  Values sums = code.zeroSums();
  sums.append(code.zeroSums());
  sums = k.loop(k.i32(0), k.i32(shape.group()), 1, sums,
                [&](Value member, ValueRange carried) {
                  return k.loop(firstQuery, k.i32(shape.sequence), block.other,
                                carried, [&](Value query, ValueRange inner) {
                                  return emitTile({member, query}, inner);
                                });
                });

  size_t half = sums.size() / 2;
  ValueRange all(sums);
  code.storeRows(all.take_front(half),
                 Values(code.rowsDown(), k.f32(shape.scale)),
                 code.keyRows(tensor(kFirstResult), batch, keyHead), first);
  code.storeRows(all.drop_front(half), Values(code.rowsDown(), k.f32(1.0f)),
                 code.keyRows(tensor(kFirstResult + 1), batch, keyHead), first);
}

KeyCode::Place KeyCode::after(Place place) {
  Value query = k.add(place.query, block.other);
  Value last = k.i32(shape.group() - 1);
  Value inHead = k.isLess(query, k.i32(shape.sequence));
  return {k.select(inHead, place.member, k.min(k.add(place.member, 1), last)),
          k.select(inHead, query, firstQuery)};
}

std::pair<Values, Values> KeyCode::fetch(Place place) {
  auto rowsOf = [&](unsigned argument) {
    return code.queryRows(tensor(argument), batch, headOf(place));
  };
  return {code.fetch(rowsOf(kQuery), place.query, block.other),
          code.fetch(rowsOf(kCotangent), place.query, block.other)};
}

Values KeyCode::emitTile(Place place, ValueRange carried) {
  size_t half = carried.size() / 2;
  Values slopes;
  code.putWeights(emitWeights(place, slopes), weights);
  code.warpBarrier();
  Values valueSums =
      code.accumulate(weights, cotangents, carried.drop_front(half));
  code.warpBarrier();
  code.putWeights(slopes, weights);
  code.warpBarrier();
  // Read here, the next tile is on its way during the product.
  auto [nextQueries, nextCotangents] = fetch(after(place));
  Values sums = code.accumulate(weights, queries, carried.take_front(half));
  sums.append(valueSums);
  k.barrier();
  code.put(nextQueries, queries);
  code.put(nextCotangents, cotangents);
  k.barrier();
  return sums;
}

Values KeyCode::emitWeights(Place place, Values &slopes) {
  Lines lines = linesOf(kLogsumexp, kDelta, batch, headOf(place));
  Values weight = code.dot(keys, queries);
  slopes = code.dot(values, cotangents);
  for (int64_t j = 0; j < code.rowsAcross(); ++j) {
    Value query = code.otherPosition(place.query, j);
    auto [line, delta] = loadLines(lines, query);
    Value inSequence = code.inSequence(query, block.other);
    for (int64_t i = 0; i < code.rowsDown(); ++i) {
      int64_t at = i * code.rowsAcross() + j;
      Value sees = k.isLess(code.ownPosition(first, i), k.add(query, 1));
      if (inSequence)
        sees = k.both(sees, inSequence);
      weight[at] = weightOf(weight[at], line, sees);
      slopes[at] = k.mulf(weight[at], k.subf(slopes[at], delta));
    }
  }
  return weight;
}

//===----------------------------------------------------------------------===//
// Queries
//===----------------------------------------------------------------------===//

/// Arguments, in order: as those of KeyCode, then the queries' cotangent.
class QueryCode : GpuBackwardCode {
public:
  using GpuBackwardCode::GpuBackwardCode;

  void emit();

private:
  Values emitTile(Value key, ValueRange sums);

  HeadRows keyRows{}, valueRows{};
  SharedTile queries{}, cotangents{}, keys{}, values{}, slopes{};
  Lines lines{};
  Value first; // query of the block, i32
};

void QueryCode::emit() {
  auto [batch, head, start] = code.queryBlock(block.own);
  first = start;
  Value keyHead = k.div(head, shape.group());
  keyRows = code.keyRows(tensor(kKey), batch, keyHead);
  valueRows = code.keyRows(tensor(kValue), batch, keyHead);
  queries = code.allocateRows(block.own);
  cotangents = code.allocateRows(block.own);
  keys = code.allocateRows(block.other);
  values = code.allocateRows(block.other);
  slopes = code.allocateWeights();
  putOwn(queries, code.queryRows(tensor(kQuery), batch, head), first,
         baseTwoScale());
  putOwn(cotangents, code.queryRows(tensor(kCotangent), batch, head), first,
         1.0f);
  code.put(code.fetch(keyRows, k.i32(0), block.other), keys);
  code.put(code.fetch(valueRows, k.i32(0), block.other), values);
  lines = linesOf(kLogsumexp, kDelta, batch, head);
  k.barrier();

  Value limit = k.min(k.add(first, block.own), k.i32(shape.sequence));
  Values sums = k.loop(
      k.i32(0), limit, block.other, code.zeroSums(),
      [&](Value key, ValueRange before) { return emitTile(key, before); });
  code.storeRows(sums, Values(code.rowsDown(), k.f32(shape.scale)),
                 code.queryRows(tensor(kFirstResult), batch, head), first);
}

Values QueryCode::emitTile(Value key, ValueRange sums) {
  Values weight = code.dot(queries, keys);
  Values slope = code.dot(cotangents, values);
  for (int64_t i = 0; i < code.rowsDown(); ++i) {
    // Keys beyond the sequence are beyond every query in it.
    Value query = code.ownPosition(first, i), end = k.add(query, 1);
    auto [line, delta] = loadLines(lines, query);
    for (int64_t j = 0; j < code.rowsAcross(); ++j) {
      int64_t at = i * code.rowsAcross() + j;
      Value sees = k.isLess(code.otherPosition(key, j), end);
      slope[at] =
          k.mulf(weightOf(weight[at], line, sees), k.subf(slope[at], delta));
    }
  }
  code.putWeights(slope, slopes);
  code.warpBarrier();
  // Read here, the next tile is on its way during the product.
  Value next = k.add(key, block.other);
  Values nextKeys = code.fetch(keyRows, next, block.other);
  Values nextValues = code.fetch(valueRows, next, block.other);
  Values after = code.accumulate(slopes, keys, sums);
  k.barrier();
  code.put(nextKeys, keys);
  code.put(nextValues, values);
  k.barrier();
  return after;
}

//===----------------------------------------------------------------------===//
// Plan
//===----------------------------------------------------------------------===//

using Kind = KernelArgument::Kind;
constexpr KernelArgument kDeltaBuffer{Kind::Temporary, 0};

/// The kernel, without its results.
template <typename Code>
FailureOr<KernelCall> planSums(mlir::rota::AttentionGradOp op, StringRef name,
                               const AttentionShape &shape, int64_t heads,
                               unsigned results, KernelLibrary &library) {
  int64_t blocks = shape.batch * heads *
                   llvm::divideCeil(shape.sequence, blockOf(shape).own);
  auto symbol =
      emitGpuKernel(library, op.getLoc(), name, toString(shape),
                    kFirstResult + results, blocks, GpuAttentionCode::kThreads,
                    [&](GpuBuilder &k) { Code(k, shape).emit(); });
  if (failed(symbol))
    return failure();
  KernelCall call{*symbol, blocks, 1, {}};
  // All but the output, which is number 4.
  for (unsigned operand : {0, 1, 2, 3, 5})
    call.arguments.push_back({Kind::Operand, operand});
  call.arguments.push_back(kDeltaBuffer);
  return call;
}

FailureOr<KernelPlan> planAttentionGrad(mlir::rota::AttentionGradOp op,
                                        KernelLibrary &library) {
  AttentionShape shape =
      attentionShape(op.getQuery(), op.getKey(), op.getScale());
  if (failed(checkGpuHeadSize(op, shape)))
    return failure();
  DeltaGeometry geometry(shape);
  auto delta =
      emitGpuKernel(library, op.getLoc(), "attention_delta", toString(shape),
                    /*arguments=*/3, geometry.blocks, DeltaGeometry::kThreads,
                    [&](GpuBuilder &k) { emitDelta(k, shape); });
  auto keys = planSums<KeyCode>(op, "attention_key_grad", shape, shape.keyHeads,
                                /*results=*/2, library);
  auto queries = planSums<QueryCode>(op, "attention_query_grad", shape,
                                     shape.heads, /*results=*/1, library);
  if (failed(delta) || failed(keys) || failed(queries))
    return failure();
  queries->arguments.push_back({Kind::Result, 0});
  keys->arguments.push_back({Kind::Result, 1});
  keys->arguments.push_back({Kind::Result, 2});
  KernelPlan plan;
  plan.temporaries.push_back(geometry.rows * sizeof(float));
  plan.calls = {{*delta,
                 geometry.rows,
                 1,
                 {{Kind::Operand, 0}, {Kind::Operand, 4}, kDeltaBuffer}},
                *keys,
                *queries};
  return plan;
}

} // namespace

void addGpuAttentionGradEmitters(KernelEmitters &emitters) {
  emitters.add<planAttentionGrad>();
}

} // namespace rota::lowering
