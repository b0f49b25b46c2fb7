// SPDX-License-Identifier: Apache-2.0
//
// Attention, forward: softmax(scale * q k^T) v under the op's mask, by blocks
// of keys with a running maximum and sum (Dao et al. 2022, algorithm 1), which
// begin with the sink, or with the output and logsumexp of other keys, where
// there are any. A kernel row is one block of queries of one head.
#include "lowering/kernels/attention/AttentionCode.h"

#include <limits>

using namespace mlir;

namespace rota::lowering {

namespace {

class ForwardCode {
public:
  ForwardCode(KernelBuilder &k, const AttentionShape &shape)
      : k(k), shape(shape), code(k, shape) {
    Type f32 = k.ops().getF32Type();
    for (unsigned i = 0; i < 3; ++i)
      tensors.push_back(k.argument(i, shape.element));
    tensors.push_back(k.argument(3, shape.wideElement));
    logsumexp = k.argument(4, f32);
    unsigned next = 5;
    if (shape.hasPrevious) {
      previous = k.argument(next++, f32);
      previousLogsumexp = k.argument(next++, f32);
    }
    if (shape.hasSinks)
      sinks = k.argument(next++, f32);
    if (shape.hasDocuments)
      documents = k.argument(next++, k.ops().getI32Type());
    if (shape.dependsOnPosition) {
      position = k.argument(next++, k.ops().getI32Type());
      distance = k.argument(next++, k.ops().getI32Type());
    }
    lastArgument = next;
    int64_t block = code.queryBlock();
    queries = code.operand(shape.size, block);
    sums = code.querySums(shape.valueSize);
    scores = k.stack(AttentionCode::kKeyBlock * block);
    weights = code.takesPairs() ? code.operand(AttentionCode::kKeyBlock, block)
                                : scores;
    lines = k.stack(block);
    if (!shape.element.isF32()) {
      keySpace =
          code.operand(AttentionCode::kKeyBlock, code.padded(shape.size));
      valueSpace =
          code.operand(AttentionCode::kKeyBlock, code.padded(shape.valueSize));
    }
  }

  void emit() {
    code.emit(lastArgument, [&] {
      k.loop(k.begin(), k.end(), 1, [&](Value row) {
        Value first = k.mul(k.rem(row, code.queryBlocks()), code.queryBlock());
        Value headOfBatch = k.div(row, code.queryBlocks());
        code.setNextHead(/*isFirst=*/k.isLess(first, k.i64(1)),
                         k.isLess(k.add(row, code.queryBlocks()), k.end()),
                         k.add(headOfBatch, 1),
                         {tensors[0], tensors[1], tensors[2]}, {});
        emitBlock(k.div(headOfBatch, shape.heads),
                  k.rem(headOfBatch, shape.heads), first);
      });
    });
  }

private:
  static constexpr int64_t kVectors = AttentionCode::kVectors;

  /// One block of queries, from `first` on.
  void emitBlock(Value batch, Value head, Value first) {
    Value keyHead = k.div(head, shape.group());
    code.loadOperand(code.queryRows(tensors[0], batch, head), first,
                     shape.scale, queries, nullptr);
    Value line =
        k.add(k.mul(code.headNumber(batch, head), shape.sequence), first);
    SmallVector<Value> initial = initialState(batch, head, first, line);
    StridedRows keys = code.keyRows(tensors[1], batch, keyHead);
    StridedRows values = code.valueRows(tensors[2], batch, keyHead);
    if (shape.hasDocuments)
      code.readDocuments(documents, batch, first);
    auto walk = [&] {
      return code.keyBlocks(
          first, initial, [&](Value key, Value count, ValueRange carried) {
            return emitKeys(keys, values, key, count, first, carried);
          });
    };
    SmallVector<Value> state =
        shape.dependsOnPosition ? k.choose(code.seesBlock(position, distance),
                                           walk, [&] { return initial; })
                                : walk();
    SmallVector<Value> factor;
    for (int64_t v = 0; v < kVectors; ++v) {
      factor.push_back(k.divf(k.splat(1.0f), state[kVectors + v]));
      k.storeVector(k.addf(state[v], k.log(state[kVectors + v])), lines,
                    k.i64(v * k.lanes()), k.lanes());
    }
    code.storeBlock(sums, factor, code.outputRows(tensors[3], batch, head),
                    first);
    k.loop(k.i64(0), k.sub(code.queryEnd(first), first), 1, [&](Value i) {
      k.store(k.load(lines, i), logsumexp, k.add(line, i));
    });
  }

  /// Sets the weighted sums to those without keys. Returns the maximum of each
  /// vector of queries, then the sum. The maximum is finite, so that a row none
  /// of whose keys has come stays so. The keys before together are as one key
  /// whose score is their logsumexp, and whose value their output.
  SmallVector<Value> initialState(Value batch, Value head, Value first,
                                  Value line) {
    if (shape.hasPrevious)
      return previousState(batch, head, first, line);
    code.clearSums(sums, shape.valueSize);
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

  SmallVector<Value> previousState(Value batch, Value head, Value first,
                                   Value line) {
    code.loadSums(code.outputRows(previous, batch, head), first, sums);
    k.loop(0, code.queryBlock(), 1, [&](Value i) {
      Value last = k.sub(k.i64(shape.sequence - 1), first);
      k.store(k.load(previousLogsumexp, k.add(line, k.min(i, last))), lines, i);
    });
    SmallVector<Value> state;
    for (int64_t v = 0; v < kVectors; ++v)
      state.push_back(k.loadVector(lines, k.i64(v * k.lanes()), k.lanes()));
    state.append(kVectors, k.splat(1.0f));
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
    code.addWeightedKeys(sums, shrink, code.pairRows(values, count, valueSpace),
                         count, weights);
    return state;
  }

  /// Writes the scores; returns the maxima with those before.
  SmallVector<Value> emitScores(StridedRows keys, Value key, Value count,
                                Value first, ValueRange carried) {
    auto masked = code.maskedQueries(first);
    code.multiplyKeys(keys, count, queries);
    return code.keyGroups(
        count, code.registerRows(), carried.take_front(kVectors),
        [&](Value i, int64_t rows, ValueRange before) {
          SmallVector<Value> highest(before);
          SmallVector<Value> block = code.keysByBlock(keys, i, rows, queries);
          for (int64_t r = 0; r < rows; ++r) {
            for (int64_t v = 0; v < kVectors; ++v) {
              Value score = code.scaled(block[r * kVectors + v]);
              score = code.capped(score);
              score = code.maskKey(score, k.add(k.add(key, i), r), masked[v],
                                   -std::numeric_limits<float>::infinity());
              k.storeVector(score, scores, code.blockIndex(i, r, v), k.lanes());
              highest[v] = k.maxf(highest[v], score);
            }
          }
          return highest;
        });
  }

  /// Writes the weights exp(score - highest); returns their sums over the keys.
  SmallVector<Value> emitWeights(ArrayRef<Value> highest, Value count) {
    SmallVector<Value> zeros(kVectors, k.splat(0.0f));
    return code.keyGroups(
        count, 4, zeros, [&](Value i, int64_t rows, ValueRange before) {
          code.nextHead().step();
          SmallVector<Value> total(before), block;
          for (int64_t r = 0; r < rows; ++r) {
            for (int64_t v = 0; v < kVectors; ++v) {
              Value score =
                  k.loadVector(scores, code.blockIndex(i, r, v), k.lanes());
              block.push_back(k.exp(k.subf(score, highest[v])));
              total[v] = k.addf(total[v], block.back());
            }
          }
          code.storeByKeys(block, i, weights);
          return total;
        });
  }

  KernelBuilder &k;
  AttentionShape shape;
  AttentionCode code;
  SmallVector<Memory> tensors; // query, key, value, output
  Memory logsumexp, sinks{}, documents{};
  Memory previous{}, previousLogsumexp{}, position{}, distance{};
  unsigned lastArgument;
  Memory queries; // [size][query]
  Memory sums;    // of [valueSize] for each query
  Memory scores;  // [key][query]
  Memory weights; // [key][query], in place of scores if they are f32
  Memory lines;   // [query]
  Memory keySpace{}, valueSpace{};
};

} // namespace

static FailureOr<KernelPlan> planAttention(mlir::rota::AttentionOp op,
                                           KernelLibrary &library) {
  AttentionShape shape = attentionShape(op);
  if (failed(checkHeadSize(op, shape)))
    return failure();
  int64_t block = AttentionCode::kVectors * library.getVectorBits() / 32;
  KernelCall call;
  call.rows =
      shape.batch * shape.heads * ((shape.sequence + block - 1) / block);
  using Kind = KernelArgument::Kind;
  call.arguments = {{Kind::Operand, 0},
                    {Kind::Operand, 1},
                    {Kind::Operand, 2},
                    {Kind::Result, 0},
                    {Kind::Result, 1}};
  addInitialState(op, call);
  addPosition(op, shape, call);
  addTiles(shape, library, call);
  FailureOr<std::string> symbol = emitDedicated(
      library, "attention", toString(shape), call.arguments.size(),
      [&](KernelBuilder &k) { ForwardCode(k, shape).emit(); });
  if (failed(symbol))
    return failure();
  call.symbol = *symbol;
  KernelPlan plan;
  plan.calls.push_back(std::move(call));
  return plan;
}

void addAttentionEmitters(KernelEmitters &emitters) {
  emitters.add<planAttention>();
}

} // namespace rota::lowering
