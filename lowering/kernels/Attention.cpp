// SPDX-License-Identifier: Apache-2.0
//
// Attention, forward: softmax(scale * q k^T) v under the op's mask, by blocks
// of keys with a running maximum and sum (Dao et al. 2022, algorithm 1), which
// begin with the sink where there is one. A kernel row is one block of queries
// of one head.
#include "lowering/kernels/AttentionCode.h"

#include <limits>

using namespace mlir;

namespace rota::lowering {

namespace {

class ForwardCode {
public:
  ForwardCode(KernelBuilder &k, const AttentionShape &shape)
      : k(k), shape(shape), code(k, shape) {
    Type f32 = k.ops().getF32Type();
    for (unsigned i = 0; i < 4; ++i)
      tensors.push_back(k.argument(i, shape.element));
    logsumexp = k.argument(4, f32);
    if (shape.hasSinks)
      sinks = k.argument(5, f32);
    int64_t block = code.queryBlock();
    queries = k.stack(shape.size * block);
    sums = k.stack(shape.valueSize * block);
    scores = k.stack(AttentionCode::kKeyBlock * block);
    lines = k.stack(block);
    if (!shape.element.isF32()) {
      keySpace = k.stack(AttentionCode::kKeyBlock * code.padded(shape.size));
      valueSpace =
          k.stack(AttentionCode::kKeyBlock * code.padded(shape.valueSize));
    }
  }

  void emit() {
    k.loop(k.begin(), k.end(), 1, [&](Value row) {
      Value first = k.mul(k.rem(row, code.queryBlocks()), code.queryBlock());
      Value headOfBatch = k.div(row, code.queryBlocks());
      emitBlock(k.div(headOfBatch, shape.heads),
                k.rem(headOfBatch, shape.heads), first);
    });
  }

private:
  static constexpr int64_t kVectors = AttentionCode::kVectors;

  /// One block of queries, from `first` on.
  void emitBlock(Value batch, Value head, Value first) {
    Value keyHead = k.div(head, shape.group());
    code.loadBlock(code.queryRows(tensors[0], batch, head), first, shape.scale,
                   queries, nullptr);
    code.fillZero(sums, shape.valueSize * code.queryBlock());
    StridedRows keys = code.keyRows(tensors[1], batch, keyHead);
    StridedRows values = code.valueRows(tensors[2], batch, keyHead);
    SmallVector<Value> state = code.keyBlocks(
        first, initialState(head),
        [&](Value key, Value count, ValueRange carried) {
          return emitKeys(keys, values, key, count, first, carried);
        });
    SmallVector<Value> factor;
    for (int64_t v = 0; v < kVectors; ++v) {
      factor.push_back(k.divf(k.splat(1.0f), state[kVectors + v]));
      k.storeVector(k.addf(state[v], k.log(state[kVectors + v])), lines,
                    k.i64(v * k.lanes()), k.lanes());
    }
    code.storeBlock(sums, factor, code.outputRows(tensors[3], batch, head),
                    first);
    Value line = k.add(
        k.mul(k.add(k.mul(batch, shape.heads), head), shape.sequence), first);
    k.loop(k.i64(0), k.sub(code.queryEnd(first), first), 1, [&](Value i) {
      k.store(k.load(lines, i), logsumexp, k.add(line, i));
    });
  }

  /// The maximum of each vector of queries, then the sum, without keys. The
  /// maximum is finite, so that a row none of whose keys has come stays so.
  SmallVector<Value> initialState(Value head) {
    Value highest = k.splat(std::numeric_limits<float>::lowest());
    Value total = k.splat(0.0f);
    if (shape.hasSinks) {
      highest = k.broadcast(k.load(sinks, head));
      total = k.splat(1.0f);
    }
    SmallVector<Value> state(kVectors, highest);
    state.append(kVectors, total);
    return state;
  }

  /// `count` keys from `key` on: scores, weights, weighted sum of values.
  SmallVector<Value> emitKeys(StridedRows keys, StridedRows values, Value key,
                              Value count, Value first, ValueRange carried) {
    keys = code.widenRows(keys, key, count, keySpace);
    values = code.widenRows(values, key, count, valueSpace);
    SmallVector<Value> highest = emitScores(keys, key, count, first, carried);
    SmallVector<Value> shrink, state(highest);
    for (int64_t v = 0; v < kVectors; ++v)
      shrink.push_back(k.exp(k.subf(carried[v], highest[v])));
    SmallVector<Value> weight = emitWeights(highest, count);
    for (int64_t v = 0; v < kVectors; ++v)
      state.push_back(k.fma(carried[kVectors + v], shrink[v], weight[v]));
    code.addWeightedKeys(sums, shrink, values, count, scores);
    return state;
  }

  /// Writes the scores; returns the maxima with those before.
  SmallVector<Value> emitScores(StridedRows keys, Value key, Value count,
                                Value first, ValueRange carried) {
    SmallVector<Value> positions = code.maskedPositions(first);
    return code.keyGroups(
        count, code.registerRows(), carried.take_front(kVectors),
        [&](Value i, int64_t rows, ValueRange before) {
          SmallVector<Value> highest(before);
          SmallVector<Value> block = code.keysByBlock(keys, i, rows, queries);
          for (int64_t r = 0; r < rows; ++r) {
            for (int64_t v = 0; v < kVectors; ++v) {
              Value score = block[r * kVectors + v];
              if (shape.softCap != 0.0f)
                score = k.mulf(code.bend(score), k.splat(shape.softCap));
              score = code.maskKey(score, k.add(k.add(key, i), r), positions[v],
                                   -std::numeric_limits<float>::infinity());
              k.storeVector(score, scores, code.blockIndex(i, r, v), k.lanes());
              highest[v] = k.maxf(highest[v], score);
            }
          }
          return highest;
        });
  }

  /// Replaces scores by exp(score - highest); returns their sums over the keys.
  SmallVector<Value> emitWeights(ArrayRef<Value> highest, Value count) {
    SmallVector<Value> zeros(kVectors, k.splat(0.0f));
    return code.keyGroups(
        count, 4, zeros, [&](Value i, int64_t rows, ValueRange before) {
          SmallVector<Value> total(before);
          for (int64_t r = 0; r < rows; ++r) {
            for (int64_t v = 0; v < kVectors; ++v) {
              Value at = code.blockIndex(i, r, v);
              Value weight = k.exp(
                  k.subf(k.loadVector(scores, at, k.lanes()), highest[v]));
              k.storeVector(weight, scores, at, k.lanes());
              total[v] = k.addf(total[v], weight);
            }
          }
          return total;
        });
  }

  KernelBuilder &k;
  AttentionShape shape;
  AttentionCode code;
  SmallVector<Memory> tensors; // query, key, value, output
  Memory logsumexp, sinks{};
  Memory queries, sums; // [size][query], [valueSize][query]
  Memory scores;        // [key][query]
  Memory lines;         // [query]
  Memory keySpace, valueSpace;
};

} // namespace

static FailureOr<KernelPlan> planAttention(mlir::rota::AttentionOp op,
                                           KernelLibrary &library) {
  AttentionShape shape = attentionShape(op);
  if (failed(checkHeadSize(op, shape)))
    return failure();
  FailureOr<std::string> symbol = emitDedicated(
      library, "attention", toString(shape), shape.hasSinks ? 6 : 5,
      [&](KernelBuilder &k) { ForwardCode(k, shape).emit(); });
  if (failed(symbol))
    return failure();
  int64_t block = AttentionCode::kVectors * library.getVectorBits() / 32;
  KernelCall call;
  call.symbol = *symbol;
  call.rows =
      shape.batch * shape.heads * ((shape.sequence + block - 1) / block);
  using Kind = KernelArgument::Kind;
  call.arguments = {{Kind::Operand, 0},
                    {Kind::Operand, 1},
                    {Kind::Operand, 2},
                    {Kind::Result, 0},
                    {Kind::Result, 1}};
  if (shape.hasSinks)
    call.arguments.push_back({Kind::Operand, 3});
  KernelPlan plan;
  plan.calls.push_back(std::move(call));
  return plan;
}

void addAttentionEmitters(KernelEmitters &emitters) {
  emitters.add<planAttention>();
}

} // namespace rota::lowering
