// SPDX-License-Identifier: Apache-2.0
//
// Attention, backward (Dao et al. 2022, algorithm 4): probabilities are
// computed again, a block of keys by a block of queries at a time. A kernel row
// is one key-value head of one sequence with all its query heads, so that each
// sum has one writer and one order: heads, then queries, ascending.
#include "lowering/kernels/attention/AttentionCode.h"

#include <limits>

using namespace mlir;

namespace rota::lowering {
namespace {

/// The kernel's arguments, in order. After them stand, where they are there:
/// sums over queries in f32, of keys and of values, where the cotangents are
/// not f32; then sinks, and sums of their cotangents over the queries of
/// [batch, head]; then documents; then the position and the distance in blocks;
/// then tiles.
enum Argument : unsigned {
  kCotangent,
  kQuery,
  kKey,
  kValue,
  kOutput,
  kLogsumexp,
  kQueryCotangent,
  kKeyCotangent,
  kValueCotangent,
  kCount,
};

bool needsSums(const AttentionShape &shape) { return !shape.element.isF32(); }

/// The first argument after those of sums.
unsigned sinksArgument(const AttentionShape &shape) {
  return needsSums(shape) ? kCount + 2 : kCount;
}

unsigned documentsArgument(const AttentionShape &shape) {
  return sinksArgument(shape) + (shape.hasSinks ? 2 : 0);
}

unsigned positionArgument(const AttentionShape &shape) {
  return documentsArgument(shape) + shape.hasDocuments;
}

unsigned tilesArgument(const AttentionShape &shape) {
  return positionArgument(shape) + (shape.dependsOnPosition ? 2 : 0);
}

class BackwardCode {
public:
  BackwardCode(KernelBuilder &k, const AttentionShape &shape)
      : k(k), shape(shape), code(k, shape) {
    int64_t block = code.queryBlock(), padded = code.padded(shape.size);
    int64_t valuePadded = code.padded(shape.valueSize);
    queries = code.operand(shape.size, block);
    cotangents = code.operand(shape.valueSize, block);
    querySums = code.querySums(shape.size);
    queryCopy = code.operand(block, padded);
    cotangentCopy = code.operand(block, valuePadded);
    weights = k.stack(AttentionCode::kKeyBlock * block);
    slopes = code.operand(AttentionCode::kKeyBlock, block);
    weightRows = code.byQueries(weights);
    slopeRows = code.byQueries(slopes);
    if (shape.softCap != 0.0f)
      bends = k.stack(AttentionCode::kKeyBlock * block);
    logsumexp = k.stack(block);
    deltas = k.stack(block);
    if (needsSums(shape)) {
      keySpace = code.operand(AttentionCode::kKeyBlock, padded);
      valueSpace = code.operand(AttentionCode::kKeyBlock, valuePadded);
    }
  }

  void emit() {
    code.emit(tilesArgument(shape), [&] {
      k.loop(k.begin(), k.end(), 1, [&](Value row) { emitRow(row); });
    });
  }

private:
  static constexpr int64_t kVectors = AttentionCode::kVectors;

  void emitRow(Value row) {
    Value batch = k.div(row, shape.keyHeads);
    Value keyHead = k.rem(row, shape.keyHeads);
    keySums = code.keyRows(tensor(kKeyCotangent), batch, keyHead);
    valueSums = code.valueRows(tensor(kValueCotangent), batch, keyHead);
    StridedRows keyCotangents = keySums, valueCotangents = valueSums;
    if (needsSums(shape)) {
      keySums = sumRows(kCount, shape.size);
      valueSums = sumRows(kCount + 1, shape.valueSize);
    }
    code.clearRows(keySums);
    code.clearRows(valueSums);
    k.loop(0, shape.group(), 1, [&](Value member) {
      Value head = k.add(k.mul(keyHead, shape.group()), member);
      Value next = k.add(code.headNumber(batch, head), 1);
      Value end = k.mul(k.end(), shape.group());
      code.setNextHead(/*isFirst=*/{}, k.isLess(next, end), next,
                       {tensor(kQuery), tensor(kKey), tensor(kValue)},
                       {tensor(kCotangent), tensor(kOutput)});
      if (shape.hasSinks)
        k.store(k.f32(0.0f), sinkSums(), code.headNumber(batch, head));
      k.loop(0, shape.sequence, code.queryBlock(),
             [&](Value first) { emitBlock(batch, head, keyHead, first); });
    });
    if (needsSums(shape)) {
      code.copyRows(keySums, keyCotangents);
      code.copyRows(valueSums, valueCotangents);
    }
  }

  Memory tensor(unsigned i) { return k.argument(i, shape.element); }

  /// Sums over queries of a kernel row, in a temporary.
  StridedRows sumRows(unsigned temporary, int64_t size) {
    return code.keySums(k.argument(temporary, k.ops().getF32Type()), size);
  }

  Memory sinkSums() {
    return k.argument(sinksArgument(shape) + 1, k.ops().getF32Type());
  }

  /// One block of queries against all keys that it sees.
  void emitBlock(Value batch, Value head, Value keyHead, Value first) {
    // Queries are scaled when they are loaded, so that scores and the keys'
    // cotangents are scaled too. The queries' cotangents are scaled at the end.
    // In pairs, scores and their cotangents are scaled instead.
    code.loadOperand(code.queryRows(tensor(kQuery), batch, head), first,
                     shape.scale, queries, &queryCopy);
    code.loadOperand(code.outputRows(tensor(kCotangent), batch, head), first,
                     1.0f, cotangents, &cotangentCopy);
    emitLines(batch, head, first);
    if (shape.hasSinks)
      addToSink(batch, head);
    code.clearSums(querySums, shape.size);
    if (shape.hasDocuments)
      code.readDocuments(
          k.argument(documentsArgument(shape), k.ops().getI32Type()), batch,
          first);
    auto walk = [&] { emitAllKeys(batch, keyHead, first); };
    if (shape.dependsOnPosition) {
      unsigned position = positionArgument(shape);
      Type i32 = k.ops().getI32Type();
      k.when(code.seesBlock(k.argument(position, i32),
                            k.argument(position + 1, i32)),
             walk);
    } else {
      walk();
    }
    SmallVector<Value> scale(kVectors,
                             k.splat(code.takesPairs() ? 1.0f : shape.scale));
    code.storeBlock(
        querySums, scale,
        code.queryRows(k.argument(kQueryCotangent, shape.wideElement), batch,
                       head),
        first);
  }

  void emitAllKeys(Value batch, Value keyHead, Value first) {
    StridedRows keys = code.keyRows(tensor(kKey), batch, keyHead);
    StridedRows values = code.valueRows(tensor(kValue), batch, keyHead);
    code.keyBlocks(first, {}, [&](Value key, Value count, ValueRange) {
      emitKeys(keys, values, key, count, first);
      return SmallVector<Value>();
    });
  }

  /// Per query: logsumexp, and delta = sum over d of cotangent * output, which
  /// is the sum over keys of weight * (cotangent of the weight).
  void emitLines(Value batch, Value head, Value first) {
    StridedRows outputs = code.outputRows(tensor(kOutput), batch, head);
    Memory cotangent = code.outputRows(tensor(kCotangent), batch, head).memory;
    Memory from = k.argument(kLogsumexp, k.ops().getF32Type());
    Value line = k.mul(code.headNumber(batch, head), shape.sequence);
    k.loop(0, code.queryBlock(), 1, [&](Value i) {
      Value row = k.min(k.add(first, i), k.i64(shape.sequence - 1));
      // Lanes beyond the sequence repeat a row: their weights must be 0.
      Value beyond = k.f32(std::numeric_limits<float>::infinity());
      Value isRow = k.isLess(k.add(first, i), k.i64(shape.sequence));
      k.store(k.select(isRow, k.load(from, k.add(line, row)), beyond),
              logsumexp, i);
      Memory sum = deltas;
      k.store(k.f32(0.0f), sum, i);
      code.sizeChunks(outputs.size, [&](Value d, int64_t count) {
        Value at = k.add(k.mul(row, outputs.stride), d);
        Value part = k.sumLanes(k.mulf(k.loadVector(outputs.memory, at, count),
                                       k.loadVector(cotangent, at, count)));
        k.store(k.addf(k.load(sum, i), part), sum, i);
      });
    });
  }

  /// Adds the block's part of the sink's cotangent. The weight of lanes beyond
  /// the sequence is 0.
  void addToSink(Value batch, Value head) {
    Memory sinks = k.argument(sinksArgument(shape), k.ops().getF32Type());
    Value sink = k.broadcast(k.load(sinks, head));
    Value sum = k.load(sinkSums(), code.headNumber(batch, head));
    for (int64_t v = 0; v < kVectors; ++v) {
      Value at = k.i64(v * k.lanes());
      Value line = k.loadVector(logsumexp, at, k.lanes());
      Value weight = k.exp(k.subf(sink, line));
      Value delta = k.loadVector(deltas, at, k.lanes());
      sum = k.subf(sum, k.sumLanes(k.mulf(weight, delta)));
    }
    k.store(sum, sinkSums(), code.headNumber(batch, head));
  }

  /// `count` keys from `key` on.
  void emitKeys(StridedRows allKeys, StridedRows allValues, Value key,
                Value count, Value first) {
    StridedRows keys = code.widenRows(allKeys, key, count, keySpace);
    StridedRows values = code.widenRows(allValues, key, count, valueSpace);
    emitWeights(keys, key, count, first);
    emitSlopes(values, count);
    code.addWeightedQueries(valueSums.from(k, key), count, weightRows,
                            cotangentCopy);
    code.addWeightedQueries(keySums.from(k, key), count, slopeRows, queryCopy);
    code.addWeightedKeys(querySums, {}, code.pairRows(keys, count, keySpace),
                         count, slopes);
  }

  /// weights[key][query] = exp(score - logsumexp), 0 where not seen; bends are
  /// the derivatives of capped scores.
  void emitWeights(StridedRows keys, Value key, Value count, Value first) {
    auto masked = code.maskedQueries(first);
    code.multiplyKeys(keys, count, queries);
    SmallVector<Value> lines;
    for (int64_t v = 0; v < kVectors; ++v)
      lines.push_back(k.loadVector(logsumexp, k.i64(v * k.lanes()), k.lanes()));
    code.keyGroups(
        count, code.registerRows(), {}, [&](Value i, int64_t rows, ValueRange) {
          SmallVector<Value> block;
          SmallVector<Value> scores = code.keysByBlock(keys, i, rows, queries);
          for (int64_t r = 0; r < rows; ++r) {
            for (int64_t v = 0; v < kVectors; ++v) {
              Value at = code.blockIndex(i, r, v);
              Value score = code.scaled(scores[r * kVectors + v]);
              score = code.capped(score, &bends, at);
              Value weight = k.exp(k.subf(score, lines[v]));
              weight = code.maskKey(weight, k.add(k.add(key, i), r), masked[v],
                                    0.0f);
              k.storeVector(weight, weights, at, k.lanes());
              block.push_back(weight);
            }
          }
          code.storeByQueries(block, i, weightRows);
          return SmallVector<Value>();
        });
  }

  /// slopes[key][query] = weight * (cotangent of the weight - delta), the
  /// cotangent of the score, times the derivative of a cap; in pairs of the
  /// product of keys and queries, which the scale is a factor of.
  void emitSlopes(StridedRows values, Value count) {
    code.multiplyKeys(values, count, cotangents);
    SmallVector<Value> delta;
    for (int64_t v = 0; v < kVectors; ++v)
      delta.push_back(k.loadVector(deltas, k.i64(v * k.lanes()), k.lanes()));
    code.keyGroups(
        count, code.registerRows(), {}, [&](Value i, int64_t rows, ValueRange) {
          SmallVector<Value> slopeBlock,
              block = code.keysByBlock(values, i, rows, cotangents);
          for (int64_t r = 0; r < rows; ++r) {
            for (int64_t v = 0; v < kVectors; ++v) {
              Value at = code.blockIndex(i, r, v);
              Value slope = k.mulf(k.loadVector(weights, at, k.lanes()),
                                   k.subf(block[r * kVectors + v], delta[v]));
              if (shape.softCap != 0.0f)
                slope = k.mulf(slope, k.loadVector(bends, at, k.lanes()));
              slopeBlock.push_back(code.scaled(slope));
            }
          }
          code.storeByKeys(slopeBlock, i, slopes);
          code.storeByQueries(slopeBlock, i, slopeRows);
          return SmallVector<Value>();
        });
  }

  KernelBuilder &k;
  AttentionShape shape;
  AttentionCode code;
  Memory queries;           // [size][query]
  Memory querySums;         // of [size] for each query
  Memory cotangents;        // [valueSize][query]
  Memory queryCopy;         // [query][padded size]
  Memory cotangentCopy;     // [query][padded valueSize]
  Memory weights, slopes;   // [key][query]
  Memory weightRows;        // weights for products by queries
  Memory slopeRows;         // slopes for products by queries
  Memory bends{};           // [key][query]
  Memory logsumexp, deltas; // [query]
  Memory keySpace{};        // [key][padded size]
  Memory valueSpace{};      // [key][padded valueSize]
  StridedRows keySums{};    // [sequence][size], f32
  StridedRows valueSums{};  // [sequence][valueSize], f32
};

} // namespace

using Kind = KernelArgument::Kind;

/// The call that adds up the sums of sinks' cotangents over the batch, in
/// order, in temporary number `sums`: a row is a head.
static FailureOr<KernelCall> planSinkSums(const AttentionShape &shape,
                                          unsigned sums,
                                          KernelLibrary &library) {
  std::string key =
      std::to_string(shape.batch) + "x" + std::to_string(shape.heads);
  FailureOr<std::string> symbol = emitDedicated(
      library, "attention_sink_grad", key, 2, [&](KernelBuilder &k) {
        Type f32 = k.ops().getF32Type();
        k.loop(k.begin(), k.end(), 1, [&](Value head) {
          auto add = [&](Value batch, ValueRange before) {
            Value at = k.add(k.mul(batch, shape.heads), head);
            Value part = k.load(k.argument(0, f32), at);
            return SmallVector<Value>{k.addf(before[0], part)};
          };
          Value sum =
              k.loop(k.i64(0), k.i64(shape.batch), 1, {k.f32(0.0f)}, add)[0];
          k.store(sum, k.argument(1, f32), head);
        });
      });
  if (failed(symbol))
    return failure();
  return KernelCall{
      *symbol, shape.heads, 1, {{Kind::Temporary, sums}, {Kind::Result, 3}}};
}

static FailureOr<KernelPlan> planAttentionGrad(mlir::rota::AttentionGradOp op,
                                               KernelLibrary &library) {
  AttentionShape shape = attentionShape(op);
  if (failed(checkHeadSize(op, shape)))
    return failure();
  bool tiles = takesTiles(shape, library.getTarget().pairs);
  FailureOr<std::string> symbol = emitDedicated(
      library, "attention_grad", toString(shape), tilesArgument(shape) + tiles,
      [&](KernelBuilder &k) { BackwardCode(k, shape).emit(); });
  if (failed(symbol))
    return failure();
  KernelPlan plan;
  KernelCall call;
  call.symbol = *symbol;
  call.rows = shape.batch * shape.keyHeads;
  for (unsigned i = 0; i < 6; ++i)
    call.arguments.push_back({Kind::Operand, i});
  for (unsigned i = 0; i < 3; ++i)
    call.arguments.push_back({Kind::Result, i});
  auto addTemporary = [&](int64_t elements) {
    call.arguments.push_back(
        {Kind::Temporary, unsigned(plan.temporaries.size())});
    plan.temporaries.push_back(elements * sizeof(float));
  };
  if (needsSums(shape)) {
    auto addSums = [&](int64_t size) {
      addTemporary(call.rows * sumElements(shape, size, tiles));
    };
    addSums(shape.size);
    addSums(shape.valueSize);
  }
  if (shape.hasSinks) {
    call.arguments.push_back({Kind::Operand, 6});
    addTemporary(shape.batch * shape.heads);
  }
  addDocuments(op, call);
  addPosition(op, shape, call);
  addTiles(shape, library, call);
  plan.calls.push_back(std::move(call));
  if (shape.hasSinks) {
    auto sums =
        planSinkSums(shape, unsigned(plan.temporaries.size()) - 1, library);
    if (failed(sums))
      return failure();
    plan.calls.push_back(std::move(*sums));
  }
  return plan;
}

void addAttentionGradEmitters(KernelEmitters &emitters) {
  emitters.add<planAttentionGrad>();
}

} // namespace rota::lowering
