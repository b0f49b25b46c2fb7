// SPDX-License-Identifier: Apache-2.0
//
// Attention, backward (Dao et al. 2022, algorithm 4): probabilities are
// computed again, a block of keys by a block of queries at a time. A kernel row
// is one key-value head of one sequence with all its query heads, so that each
// sum has one writer and one order: heads, then queries, ascending.
#include "lowering/kernels/AttentionCode.h"

#include <limits>

using namespace mlir;

namespace rota::lowering {
namespace {

/// The kernel's arguments, in order. The last two are f32 and there only when
/// the key's and value's cotangents are not.
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
  kKeySums,
  kValueSums,
};

class BackwardCode {
public:
  BackwardCode(KernelBuilder &k, const AttentionShape &shape)
      : k(k), shape(shape), code(k, shape) {
    int64_t block = code.queryBlock(), padded = code.paddedSize();
    queries = k.stack(shape.size * block);
    cotangents = k.stack(shape.size * block);
    querySums = k.stack(shape.size * block);
    queryCopy = k.stack(block * padded);
    cotangentCopy = k.stack(block * padded);
    weights = k.stack(AttentionCode::kKeyBlock * block);
    slopes = k.stack(AttentionCode::kKeyBlock * block);
    logsumexp = k.stack(block);
    deltas = k.stack(block);
    if (!shape.element.isF32()) {
      keySpace = k.stack(AttentionCode::kKeyBlock * padded);
      valueSpace = k.stack(AttentionCode::kKeyBlock * padded);
    }
  }

  void emit() {
    k.loop(k.begin(), k.end(), 1, [&](Value row) {
      Value batch = k.div(row, shape.keyHeads);
      Value keyHead = k.rem(row, shape.keyHeads);
      keySums = sumRows(kKeyCotangent, kKeySums, row, batch, keyHead);
      valueSums = sumRows(kValueCotangent, kValueSums, row, batch, keyHead);
      clear(keySums);
      clear(valueSums);
      k.loop(0, shape.group(), 1, [&](Value member) {
        Value head = k.add(k.mul(keyHead, shape.group()), member);
        k.loop(0, shape.sequence, code.queryBlock(),
               [&](Value first) { emitBlock(batch, head, keyHead, first); });
      });
      if (!shape.element.isF32()) {
        round(keySums, code.keyRows(tensor(kKeyCotangent), batch, keyHead));
        round(valueSums, code.keyRows(tensor(kValueCotangent), batch, keyHead));
      }
    });
  }

private:
  static constexpr int64_t kVectors = AttentionCode::kVectors;

  Memory tensor(unsigned i) { return k.argument(i, shape.element); }

  /// The f32 buffer of the sums over queries: the result itself if it is f32.
  StridedRows sumRows(unsigned result, unsigned temporary, Value row,
                      Value batch, Value keyHead) {
    if (shape.element.isF32())
      return code.keyRows(tensor(result), batch, keyHead);
    Memory sums = k.argument(temporary, k.ops().getF32Type());
    return {k.offset(sums, k.mul(row, shape.sequence * shape.size)),
            shape.size};
  }

  void clear(StridedRows rows) {
    k.loop(0, shape.sequence, 1, [&](Value row) {
      code.sizeChunks([&](Value d, int64_t count) {
        k.storeVector(k.splat(0.0f), rows.memory,
                      k.add(k.mul(row, rows.stride), d), count);
      });
    });
  }

  void round(StridedRows from, StridedRows to) {
    k.loop(0, shape.sequence, 1, [&](Value row) {
      code.sizeChunks([&](Value d, int64_t count) {
        Value value =
            k.loadVector(from.memory, k.add(k.mul(row, from.stride), d), count);
        k.storeVector(value, to.memory, k.add(k.mul(row, to.stride), d), count);
      });
    });
  }

  /// One block of queries against all keys that it sees.
  void emitBlock(Value batch, Value head, Value keyHead, Value first) {
    // Queries are scaled when they are loaded, so that scores and the keys'
    // cotangents are scaled too. The queries' cotangents are scaled at the end.
    code.loadBlock(code.queryRows(tensor(kQuery), batch, head), first,
                   shape.scale, queries, &queryCopy);
    code.loadBlock(code.queryRows(tensor(kCotangent), batch, head), first, 1.0f,
                   cotangents, &cotangentCopy);
    emitLines(batch, head, first);
    code.fillZero(querySums, shape.size * code.queryBlock());
    StridedRows keys = code.keyRows(tensor(kKey), batch, keyHead);
    StridedRows values = code.keyRows(tensor(kValue), batch, keyHead);
    Value limit = k.min(k.add(first, code.queryBlock()), k.i64(shape.sequence));
    Value most = k.i64(AttentionCode::kKeyBlock);
    k.loop(k.i64(0), limit, AttentionCode::kKeyBlock, [&](Value key) {
      emitKeys(keys, values, key, k.min(k.sub(limit, key), most), first);
    });
    SmallVector<Value> scale(kVectors, k.splat(shape.scale));
    code.storeBlock(querySums, scale,
                    code.queryRows(tensor(kQueryCotangent), batch, head),
                    first);
  }

  /// Per query: logsumexp, and delta = sum over d of cotangent * output, which
  /// is the sum over keys of weight * (cotangent of the weight).
  void emitLines(Value batch, Value head, Value first) {
    StridedRows outputs = code.queryRows(tensor(kOutput), batch, head);
    Memory from = k.argument(kLogsumexp, k.ops().getF32Type());
    Value line = k.mul(k.add(k.mul(batch, shape.heads), head), shape.sequence);
    k.loop(0, code.queryBlock(), 1, [&](Value i) {
      Value row = k.min(k.add(first, i), k.i64(shape.sequence - 1));
      // Lanes beyond the sequence repeat a row: their weights must be 0.
      Value beyond = k.f32(std::numeric_limits<float>::infinity());
      Value isRow = k.isLess(k.add(first, i), k.i64(shape.sequence));
      k.store(k.select(isRow, k.load(from, k.add(line, row)), beyond),
              logsumexp, i);
      Memory sum = deltas;
      k.store(k.f32(0.0f), sum, i);
      code.sizeChunks([&](Value d, int64_t count) {
        Value output = k.loadVector(
            outputs.memory, k.add(k.mul(row, outputs.stride), d), count);
        Value cotangent = k.loadVector(
            cotangentCopy, k.add(k.mul(i, code.paddedSize()), d), k.lanes());
        Value part = k.sumLanes(k.mulf(output, cotangent));
        k.store(k.addf(k.load(sum, i), part), sum, i);
      });
    });
  }

  /// `count` keys from `key` on.
  void emitKeys(StridedRows allKeys, StridedRows allValues, Value key,
                Value count, Value first) {
    StridedRows keys = code.widenRows(allKeys, key, count, keySpace);
    StridedRows values = code.widenRows(allValues, key, count, valueSpace);
    emitWeights(keys, key, count, first);
    emitSlopes(values, count);
    code.addWeightedQueries(rowsFrom(valueSums, key), count, weights,
                            cotangentCopy);
    code.addWeightedQueries(rowsFrom(keySums, key), count, slopes, queryCopy);
    code.addWeightedKeys(querySums, {}, keys, count, slopes);
  }

  StridedRows rowsFrom(StridedRows rows, Value first) {
    return {k.offset(rows.memory, k.mul(first, rows.stride)), rows.stride};
  }

  /// weights[key][query] = exp(score - logsumexp), 0 where not seen.
  void emitWeights(StridedRows keys, Value key, Value count, Value first) {
    SmallVector<Value> positions, lines;
    for (int64_t v = 0; v < kVectors; ++v) {
      positions.push_back(k.countFrom(k.add(first, v * k.lanes())));
      lines.push_back(k.loadVector(logsumexp, k.i64(v * k.lanes()), k.lanes()));
    }
    code.keyGroups(
        count, code.registerRows(), {}, [&](Value i, int64_t rows, ValueRange) {
          SmallVector<Value> scores = code.keysByBlock(keys, i, rows, queries);
          for (int64_t r = 0; r < rows; ++r) {
            for (int64_t v = 0; v < kVectors; ++v) {
              Value weight = k.exp(k.subf(scores[r * kVectors + v], lines[v]));
              weight = code.maskKey(weight, k.add(k.add(key, i), r),
                                    positions[v], 0.0f);
              k.storeVector(weight, weights, code.blockIndex(i, r, v),
                            k.lanes());
            }
          }
          return SmallVector<Value>();
        });
  }

  /// slopes[key][query] = weight * (cotangent of the weight - delta), the
  /// cotangent of the score.
  void emitSlopes(StridedRows values, Value count) {
    SmallVector<Value> delta;
    for (int64_t v = 0; v < kVectors; ++v)
      delta.push_back(k.loadVector(deltas, k.i64(v * k.lanes()), k.lanes()));
    code.keyGroups(
        count, code.registerRows(), {}, [&](Value i, int64_t rows, ValueRange) {
          SmallVector<Value> block =
              code.keysByBlock(values, i, rows, cotangents);
          for (int64_t r = 0; r < rows; ++r) {
            for (int64_t v = 0; v < kVectors; ++v) {
              Value at = code.blockIndex(i, r, v);
              Value slope = k.mulf(k.loadVector(weights, at, k.lanes()),
                                   k.subf(block[r * kVectors + v], delta[v]));
              k.storeVector(slope, slopes, at, k.lanes());
            }
          }
          return SmallVector<Value>();
        });
  }

  KernelBuilder &k;
  AttentionShape shape;
  AttentionCode code;
  Memory queries, cotangents, querySums; // [size][query]
  Memory queryCopy, cotangentCopy;       // [query][paddedSize]
  Memory weights, slopes;                // [key][query]
  Memory logsumexp, deltas;              // [query]
  Memory keySpace, valueSpace;           // [key][paddedSize]
  StridedRows keySums{}, valueSums{};    // [sequence][size], f32
};

} // namespace

static FailureOr<KernelPlan> planAttentionGrad(mlir::rota::AttentionGradOp op,
                                               KernelLibrary &library) {
  AttentionShape shape =
      attentionShape(op.getQuery(), op.getKey(), op.getScale());
  bool needsSums = !shape.element.isF32();
  if (failed(checkPlainForm(op)) || failed(checkHeadSize(op, shape)))
    return failure();
  FailureOr<std::string> symbol =
      emitDedicated(library, "attention_grad", toString(shape),
                    needsSums ? kValueSums + 1 : kValueCotangent + 1,
                    [&](KernelBuilder &k) { BackwardCode(k, shape).emit(); });
  if (failed(symbol))
    return failure();
  KernelCall call;
  call.symbol = *symbol;
  call.rows = shape.batch * shape.keyHeads;
  using Kind = KernelArgument::Kind;
  for (unsigned i = 0; i < 6; ++i)
    call.arguments.push_back({Kind::Operand, i});
  for (unsigned i = 0; i < 3; ++i)
    call.arguments.push_back({Kind::Result, i});
  KernelPlan plan;
  if (needsSums) {
    int64_t bytes = call.rows * shape.sequence * shape.size * sizeof(float);
    plan.temporaries.append(2, bytes);
    call.arguments.push_back({Kind::Temporary, 0});
    call.arguments.push_back({Kind::Temporary, 1});
  }
  plan.calls.push_back(std::move(call));
  return plan;
}

void addAttentionGradEmitters(KernelEmitters &emitters) {
  emitters.add<planAttentionGrad>();
}

} // namespace rota::lowering
