// SPDX-License-Identifier: Apache-2.0
//
// Attention, backward, on a GPU's f32 units (Dao et al. 2022, algorithm 4), in
// three kernels: delta, the sum of output times cotangent of each query; the
// cotangents of keys and values, by blocks of keys that walk over their query
// heads and then queries, ascending; the queries' cotangents, by blocks of
// queries that walk over keys, ascending. The two compute the probabilities
// again, and each sum has one writer and one order.
#include "lowering/gpu/GpuAttentionCode.h"
#include "lowering/gpu/GpuAttentionMatrix.h"

#include "llvm/Support/MathExtras.h"

#include <numbers>

using namespace mlir;

namespace rota::lowering {
namespace {

using Values = GpuAttentionCode::Values;
using Argument = AttentionGradArgument;

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
  Memory tensor(unsigned i) { return k.argument(i, shape.element); }
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

class KeyCode : GpuBackwardCode {
public:
  using GpuBackwardCode::GpuBackwardCode;

  void emit();

private:
  using Tile = GpuAttentionPlaces::QueryTile;
  /// This thread's share of the tile's queries and their cotangents.
  std::pair<Values, Values> fetch(Tile tile);
  Values emitTile(Tile tile, Tile next, ValueRange carried);
  /// The tile's weights, and in `slopes` the scores' cotangents.
  Values emitWeights(Tile tile, Values &slopes);

  SharedTile keys{}, values{}, queries{}, cotangents{}, weights{};
  GpuAttentionPlaces::KeyBlock own{};
};

void KeyCode::emit() {
  own = code.keyBlock(block.own);
  keys = code.allocateRows(block.own);
  values = code.allocateRows(block.own);
  queries = code.allocateRows(block.other);
  cotangents = code.allocateRows(block.other);
  weights = code.allocateWeights();
  auto rowsOf = [&](unsigned argument) {
    return code.keyRows(tensor(argument), own.batch, own.keyHead);
  };
  putOwn(keys, rowsOf(Argument::Key), own.first, baseTwoScale());
  putOwn(values, rowsOf(Argument::Value), own.first, 1.0f);
  auto [nextQueries, nextCotangents] =
      fetch({code.firstHead(own.keyHead), own.first});
  code.put(nextQueries, queries);
  code.put(nextCotangents, cotangents);
  k.barrier();

  Values sums = code.zeroSums();
  sums.append(code.zeroSums());
  sums = code.walkQueries(own, block.other, sums,
                          [&](Tile tile, Tile next, ValueRange carried) {
                            return emitTile(tile, next, carried);
                          });

  size_t half = sums.size() / 2;
  ValueRange all(sums);
  code.storeRows(all.take_front(half),
                 Values(code.rowsDown(), k.f32(shape.scale)),
                 rowsOf(Argument::FirstResult), own.first);
  code.storeRows(all.drop_front(half), Values(code.rowsDown(), k.f32(1.0f)),
                 rowsOf(Argument::FirstResult + 1), own.first);
}

std::pair<Values, Values> KeyCode::fetch(Tile tile) {
  // After the last tile comes one that no thread reads.
  Value last = k.add(code.firstHead(own.keyHead), shape.group() - 1);
  Value head = k.min(tile.head, last);
  auto rowsOf = [&](unsigned argument) {
    return code.queryRows(tensor(argument), own.batch, head);
  };
  return {code.fetch(rowsOf(Argument::Query), tile.first, block.other),
          code.fetch(rowsOf(Argument::Cotangent), tile.first, block.other)};
}

Values KeyCode::emitTile(Tile tile, Tile next, ValueRange carried) {
  size_t half = carried.size() / 2;
  Values slopes;
  code.putWeights(emitWeights(tile, slopes), weights);
  code.warpBarrier();
  Values valueSums =
      code.accumulate(weights, cotangents, carried.drop_front(half));
  code.warpBarrier();
  code.putWeights(slopes, weights);
  code.warpBarrier();
  // Read here, the next tile is on its way during the product.
  auto [nextQueries, nextCotangents] = fetch(next);
  Values sums = code.accumulate(weights, queries, carried.take_front(half));
  sums.append(valueSums);
  k.barrier();
  code.put(nextQueries, queries);
  code.put(nextCotangents, cotangents);
  k.barrier();
  return sums;
}

Values KeyCode::emitWeights(Tile tile, Values &slopes) {
  auto lines = code.queryLines(own.batch, tile.head);
  Values weight = code.dot(keys, queries);
  slopes = code.dot(values, cotangents);
  for (int64_t j = 0; j < code.rowsAcross(); ++j) {
    Value query = code.otherPosition(tile.first, j);
    auto [line, delta] = code.loadLines(lines, query);
    Value inSequence = code.inSequence(query, block.other);
    for (int64_t i = 0; i < code.rowsDown(); ++i) {
      int64_t at = i * code.rowsAcross() + j;
      Value sees = k.isLess(code.ownPosition(own.first, i), k.add(query, 1));
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

class QueryCode : GpuBackwardCode {
public:
  using GpuBackwardCode::GpuBackwardCode;

  void emit();

private:
  Values emitTile(Value key, ValueRange sums);

  HeadRows keyRows{}, valueRows{};
  SharedTile queries{}, cotangents{}, keys{}, values{}, slopes{};
  GpuAttentionPlaces::QueryLines lines{};
  Value first; // query of the block, i32
};

void QueryCode::emit() {
  auto [batch, head, start] = code.queryBlock(block.own);
  first = start;
  Value keyHead = k.div(head, shape.group());
  keyRows = code.keyRows(tensor(Argument::Key), batch, keyHead);
  valueRows = code.keyRows(tensor(Argument::Value), batch, keyHead);
  queries = code.allocateRows(block.own);
  cotangents = code.allocateRows(block.own);
  keys = code.allocateRows(block.other);
  values = code.allocateRows(block.other);
  slopes = code.allocateWeights();
  putOwn(queries, code.queryRows(tensor(Argument::Query), batch, head), first,
         baseTwoScale());
  putOwn(cotangents, code.queryRows(tensor(Argument::Cotangent), batch, head),
         first, 1.0f);
  code.put(code.fetch(keyRows, k.i32(0), block.other), keys);
  code.put(code.fetch(valueRows, k.i32(0), block.other), values);
  lines = code.queryLines(batch, head);
  k.barrier();

  Value limit = k.min(k.add(first, block.own), k.i32(shape.sequence));
  Values sums = k.loop(
      k.i32(0), limit, block.other, code.zeroSums(),
      [&](Value key, ValueRange before) { return emitTile(key, before); });
  code.storeRows(sums, Values(code.rowsDown(), k.f32(shape.scale)),
                 code.queryRows(tensor(Argument::FirstResult), batch, head),
                 first);
}

Values QueryCode::emitTile(Value key, ValueRange sums) {
  Values weight = code.dot(queries, keys);
  Values slope = code.dot(cotangents, values);
  for (int64_t i = 0; i < code.rowsDown(); ++i) {
    // Keys beyond the sequence are beyond every query in it.
    Value query = code.ownPosition(first, i), end = k.add(query, 1);
    auto [line, delta] = code.loadLines(lines, query);
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

FailureOr<std::string> emitKeyGrad(KernelLibrary &library, Location loc,
                                   const AttentionShape &shape) {
  return emitAttentionKernel(library, loc, "attention_key_grad", shape,
                             {Argument::FirstResult + 2, shape.keyHeads,
                              blockOf(shape).own, GpuAttentionCode::kThreads},
                             [&](GpuBuilder &k) { KeyCode(k, shape).emit(); });
}

FailureOr<std::string> emitQueryGrad(KernelLibrary &library, Location loc,
                                     const AttentionShape &shape) {
  return emitAttentionKernel(
      library, loc, "attention_query_grad", shape,
      {Argument::FirstResult + 1, shape.heads, blockOf(shape).own,
       GpuAttentionCode::kThreads},
      [&](GpuBuilder &k) { QueryCode(k, shape).emit(); });
}

/// The call of a kernel with these results.
KernelCall callSums(StringRef symbol, ArrayRef<unsigned> results,
                    KernelLibrary &library) {
  KernelCall call{symbol.str(), library.getLaunchShape(symbol).grid[0], 1, {}};
  // All but the output, which is number 4.
  for (unsigned operand : {0, 1, 2, 3, 5})
    call.arguments.push_back({Kind::Operand, operand});
  call.arguments.push_back(kDeltaBuffer);
  for (unsigned result : results)
    call.arguments.push_back({Kind::Result, result});
  return call;
}

FailureOr<KernelPlan> planAttentionGrad(mlir::rota::AttentionGradOp op,
                                        KernelLibrary &library) {
  Location loc = op.getLoc();
  AttentionShape shape =
      attentionShape(op.getQuery(), op.getKey(), op.getScale());
  if (failed(checkPlainForm(op)) || failed(checkGpuHeadSize(op, shape)))
    return failure();
  DeltaGeometry geometry(shape);
  auto delta =
      emitGpuKernel(library, loc, "attention_delta", toString(shape),
                    /*arguments=*/3, geometry.blocks, DeltaGeometry::kThreads,
                    [&](GpuBuilder &k) { emitDelta(k, shape); });
  bool onMatrices = hasMatrixAttention(shape);
  auto keys = onMatrices ? emitMatrixKeyGrad(library, loc, shape)
                         : emitKeyGrad(library, loc, shape);
  auto queries = onMatrices ? emitMatrixQueryGrad(library, loc, shape)
                            : emitQueryGrad(library, loc, shape);
  if (failed(delta) || failed(keys) || failed(queries))
    return failure();
  KernelPlan plan;
  plan.temporaries.push_back(geometry.rows * sizeof(float));
  plan.calls = {{*delta,
                 geometry.rows,
                 1,
                 {{Kind::Operand, 0}, {Kind::Operand, 4}, kDeltaBuffer}},
                callSums(*keys, {1, 2}, library),
                callSums(*queries, {0}, library)};
  return plan;
}

} // namespace

void addGpuAttentionGradEmitters(KernelEmitters &emitters) {
  emitters.add<planAttentionGrad>();
}

} // namespace rota::lowering
