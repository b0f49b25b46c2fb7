// SPDX-License-Identifier: Apache-2.0
//
// Attention, backward, on a GPU's f32 units (Dao et al. 2022, algorithm 4), in
// three kernels: delta, the sum of output times cotangent of each query
// (GpuAttentionDelta); the cotangents of keys and values, by blocks of keys
// that walk over their query heads and then queries, ascending; the queries'
// cotangents, by blocks of queries that walk over keys, ascending. The two
// compute the probabilities again, and each sum has one writer and one order.
// Sinks have one more kernel.
#include "lowering/gpu/attention/GpuAttentionCode.h"
#include "lowering/gpu/attention/GpuAttentionDelta.h"
#include "lowering/gpu/attention/GpuAttentionMatrix.h"

using namespace mlir;

namespace rota::lowering {
namespace {

using Values = GpuAttentionCode::Values;
using Argument = AttentionGradArgument;

/// Two sums and two tiles must fit into registers and 163 KiB.
AttentionBlock blockOf(const AttentionShape &shape) {
  if (shape.largestSize() <= 64)
    return {64, 64};
  return {shape.largestSize() <= 128 ? 64 : 32, 32};
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
    if (shape.largestSize() > 64)
      leaveRegistersFor(k, /*blocks=*/1);
  }

protected:
  Memory tensor(unsigned i) { return k.argument(i, shape.element); }
  /// Weight of a query and a key, from the products of their rows and of
  /// cotangent and value: exp(score - logsumexp), 0 where the query does not
  /// see the key (null: it does), and the cotangent of the scaled product.
  struct Weight {
    Value weight, slope;
  };
  Weight weightOf(Value product, Value cotangent,
                  const std::pair<Value, Value> &lines, Value sees) {
    auto [line, delta] = lines;
    auto score = code.scoreOf(product);
    Value weight = fastExp2(k, k.addf(score.value, line));
    if (sees)
      weight = k.select(sees, weight, k.f32(0.0f));
    Value slope = k.mulf(weight, k.subf(cotangent, delta));
    return {weight, score.slope ? k.mulf(slope, score.slope) : slope};
  }
  void putOwn(SharedTile tile, StridedRows rows, Value first, float factor) {
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
  using Tile = GpuAttentionBlocks::QueryTile;
  /// This thread's share of the tile's queries and their cotangents.
  std::pair<Values, Values> fetch(Tile tile);
  Values emitTile(Tile tile, Tile next, ValueRange carried);
  /// The tile's weights, and in `slopes` the scores' cotangents.
  Values emitWeights(Tile tile, Values &slopes);

  SharedTile keys{}, values{}, queries{}, cotangents{}, weights{};
  GpuAttentionBlocks::KeyBlock own{};
  size_t keySums = 0; // carried before those of values
};

void KeyCode::emit() {
  code.readLastArguments(Argument::FirstResult + 2);
  own = code.keyBlock(block.own);
  keys = code.allocateRows(block.own, shape.size);
  values = code.allocateRows(block.own, shape.valueSize);
  queries = code.allocateRows(block.other, shape.size);
  cotangents = code.allocateRows(block.other, shape.valueSize);
  weights = code.allocateWeights();
  auto keyRows = [&](unsigned argument) {
    return code.keyRows(tensor(argument), own.batch, own.keyHead);
  };
  auto valueRows = [&](unsigned argument) {
    return code.valueRows(tensor(argument), own.batch, own.keyHead);
  };
  putOwn(keys, keyRows(Argument::Key), own.first, code.productScale());
  putOwn(values, valueRows(Argument::Value), own.first, 1.0f);
  auto [nextQueries, nextCotangents] = fetch(code.firstTile(own, block.other));
  code.put(nextQueries, queries);
  code.put(nextCotangents, cotangents);
  k.barrier();

  Values sums = code.zeroSums(shape.size);
  keySums = sums.size();
  sums.append(code.zeroSums(shape.valueSize));
  sums = code.walkQueries(own, block.own, block.other, sums,
                          [&](Tile tile, Tile next, ValueRange carried) {
                            return emitTile(tile, next, carried);
                          });

  ValueRange all(sums);
  code.storeRows(all.take_front(keySums),
                 Values(code.rowsDown(), k.f32(shape.scale)),
                 keyRows(Argument::FirstResult), own.first);
  code.storeRows(all.drop_front(keySums), Values(code.rowsDown(), k.f32(1.0f)),
                 valueRows(Argument::FirstResult + 1), own.first);
}

std::pair<Values, Values> KeyCode::fetch(Tile tile) {
  // After the last tile comes one that no thread reads.
  Value last = k.add(code.firstHead(own.keyHead), shape.group() - 1);
  Value head = k.min(tile.head, last);
  StridedRows rows = code.queryRows(tensor(Argument::Query), own.batch, head);
  StridedRows outputRows =
      code.outputRows(tensor(Argument::Cotangent), own.batch, head);
  return {code.fetch(rows, tile.first, block.other),
          code.fetch(outputRows, tile.first, block.other)};
}

Values KeyCode::emitTile(Tile tile, Tile next, ValueRange carried) {
  Values slopes;
  code.putWeights(emitWeights(tile, slopes), weights);
  code.warpBarrier();
  Values valueSums =
      code.accumulate(weights, cotangents, carried.drop_front(keySums));
  code.warpBarrier();
  code.putWeights(slopes, weights);
  code.warpBarrier();
  // Read here, the next tile is in flight during the product.
  auto [nextQueries, nextCotangents] = fetch(next);
  Values sums = code.accumulate(weights, queries, carried.take_front(keySums));
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
    auto line = code.loadLines(lines, query);
    Value start = shape.hasDocuments ? code.documentStart(query) : Value();
    Value inSequence = code.inSequence(query, block.other);
    for (int64_t i = 0; i < code.rowsDown(); ++i) {
      int64_t at = i * code.rowsAcross() + j;
      Value key = code.ownPosition(own.first, i);
      Value sees = code.inDocument(code.keys().sees(query, key), key, start);
      if (inSequence)
        sees = sees ? k.both(sees, inSequence) : inSequence;
      auto both = weightOf(weight[at], slopes[at], line, sees);
      weight[at] = both.weight;
      slopes[at] = both.slope;
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

  StridedRows keyRows{}, valueRows{};
  SharedTile queries{}, cotangents{}, keys{}, values{}, slopes{};
  GpuAttentionBlocks::QueryLines lines{};
  Value first; // query of the block, i32
};

void QueryCode::emit() {
  code.readLastArguments(Argument::FirstResult + 1);
  auto [batch, head, start] = code.queryBlock(block.own);
  first = start;
  Value keyHead = k.div(head, shape.group());
  keyRows = code.keyRows(tensor(Argument::Key), batch, keyHead);
  valueRows = code.valueRows(tensor(Argument::Value), batch, keyHead);
  queries = code.allocateRows(block.own, shape.size);
  cotangents = code.allocateRows(block.own, shape.valueSize);
  keys = code.allocateRows(block.other, shape.size);
  values = code.allocateRows(block.other, shape.valueSize);
  slopes = code.allocateWeights();
  putOwn(queries, code.queryRows(tensor(Argument::Query), batch, head), first,
         code.productScale());
  putOwn(cotangents, code.outputRows(tensor(Argument::Cotangent), batch, head),
         first, 1.0f);
  Value begin = code.keyBegin(first, block.other);
  code.put(code.fetch(keyRows, begin, block.other), keys);
  code.put(code.fetch(valueRows, begin, block.other), values);
  lines = code.queryLines(batch, head);
  k.barrier();

  Values sums =
      k.loop(begin, code.keyEnd(begin, first, block.own), block.other,
             code.zeroSums(shape.size), [&](Value key, ValueRange before) {
               return emitTile(key, before);
             });
  Memory result = k.argument(Argument::FirstResult, shape.wideElement);
  code.storeRows(sums, Values(code.rowsDown(), k.f32(shape.scale)),
                 code.queryRows(result, batch, head), first);
}

Values QueryCode::emitTile(Value key, ValueRange sums) {
  Values weight = code.dot(queries, keys);
  Values slope = code.dot(cotangents, values);
  for (int64_t i = 0; i < code.rowsDown(); ++i) {
    Value query = code.ownPosition(first, i);
    auto line = code.loadLines(lines, query);
    Value start = shape.hasDocuments ? code.documentStart(query) : Value();
    for (int64_t j = 0; j < code.rowsAcross(); ++j) {
      int64_t at = i * code.rowsAcross() + j;
      Value sees = code.sees(query, code.otherPosition(key, j), start);
      slope[at] = weightOf(weight[at], slope[at], line, sees).slope;
    }
  }
  code.putWeights(slope, slopes);
  code.warpBarrier();
  // Read here, the next tile is in flight during the product.
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
                             {Argument::count(shape, 2), shape.keyHeads,
                              blockOf(shape).own, GpuAttentionCode::kThreads},
                             [&](GpuBuilder &k) { KeyCode(k, shape).emit(); });
}

FailureOr<std::string> emitQueryGrad(KernelLibrary &library, Location loc,
                                     const AttentionShape &shape) {
  return emitAttentionKernel(
      library, loc, "attention_query_grad", shape,
      {Argument::count(shape, 1), shape.heads, blockOf(shape).own,
       GpuAttentionCode::kThreads},
      [&](GpuBuilder &k) { QueryCode(k, shape).emit(); });
}

/// The call of a kernel with these results.
KernelCall callSums(mlir::rota::AttentionGradOp op, const AttentionShape &shape,
                    StringRef symbol, ArrayRef<unsigned> results,
                    KernelLibrary &library) {
  KernelCall call{symbol.str(), library.getLaunchShape(symbol).grid[0], 1, {}};
  // The op's operands without the output, which is number 4.
  for (unsigned operand : {0, 1, 2, 3, 5})
    call.arguments.push_back({Kind::Operand, operand});
  call.arguments.push_back(kDeltaBuffer);
  for (unsigned result : results)
    call.arguments.push_back({Kind::Result, result});
  addDocuments(op, call);
  addPosition(op, shape, call, Kind::Scalar);
  return call;
}

FailureOr<KernelPlan> planAttentionGrad(mlir::rota::AttentionGradOp op,
                                        KernelLibrary &library) {
  Location loc = op.getLoc();
  AttentionShape shape = attentionShape(op);
  if (failed(checkGpuHeadSize(op, shape)))
    return failure();
  auto delta = planAttentionDelta(library, loc, shape, kDeltaBuffer);
  bool onMatrices = hasMatrixAttention(shape);
  auto keys = onMatrices ? emitMatrixKeyGrad(library, loc, shape)
                         : emitKeyGrad(library, loc, shape);
  auto queries = onMatrices ? emitMatrixQueryGrad(library, loc, shape)
                            : emitQueryGrad(library, loc, shape);
  if (failed(delta) || failed(keys) || failed(queries))
    return failure();
  KernelPlan plan;
  plan.temporaries.push_back(attentionDeltaBytes(shape));
  plan.calls = {*delta, callSums(op, shape, *keys, {1, 2}, library),
                callSums(op, shape, *queries, {0}, library)};
  if (!shape.hasSinks)
    return plan;
  auto sinks = planSinkGrad(library, loc, shape, kDeltaBuffer);
  if (failed(sinks))
    return failure();
  plan.calls.push_back(*sinks);
  return plan;
}

} // namespace

void addGpuAttentionGradEmitters(KernelEmitters &emitters) {
  emitters.add<planAttentionGrad>();
}

} // namespace rota::lowering
