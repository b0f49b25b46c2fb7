// SPDX-License-Identifier: Apache-2.0
//
// Attention, forward, on a GPU's f32 units (Dao et al. 2022, algorithm 1). A
// block of threads does a block of queries of one head and walks over its keys
// in ascending order with a running maximum and sum. Scores are to the base 2:
// queries are scaled by log2(e) too.
#include "lowering/gpu/GpuAttentionCode.h"
#include "lowering/gpu/GpuAttentionMatrix.h"

#include <limits>
#include <numbers>

using namespace mlir;

namespace rota::lowering {
namespace {

constexpr AttentionBlock kBlock{/*own=*/64, /*other=*/64};

using Argument = AttentionArgument;

class GpuForwardCode {
public:
  using Values = GpuAttentionCode::Values;

  GpuForwardCode(GpuBuilder &k, const AttentionShape &shape)
      : k(k), shape(shape), code(k, shape, kBlock) {}

  void emit();

private:
  RunningSoftmax stateOf(ValueRange values) {
    return RunningSoftmax::of(values, code.rowsDown());
  }

  /// The keys of the tile, from `key` on; the tile then holds those after.
  RunningSoftmax emitKeys(Value key, RunningSoftmax state);
  /// Turns scores into weights; updates all but the new keys' share in `sums`.
  Values emitWeights(Values scores, Value key, RunningSoftmax &state);
  void emitLogsumexp(const Values &highest, const Values &total, Value batch,
                     Value head);

  Memory tensor(unsigned i) { return k.argument(i, shape.element); }

  GpuBuilder &k;
  AttentionShape shape;
  GpuAttentionCode code;
  HeadRows keyRows{}, valueRows{};
  SharedTile queries{}, tile{}, weights{};
  Value first; // query of the block, i32
};

void GpuForwardCode::emit() {
  auto [batch, head, start] = code.queryBlock(kBlock.own);
  first = start;
  Value keyHead = k.div(head, shape.group());
  keyRows = code.keyRows(tensor(Argument::Key), batch, keyHead);
  valueRows = code.keyRows(tensor(Argument::Value), batch, keyHead);
  queries = code.allocateRows(kBlock.own);
  tile = code.allocateRows(kBlock.other);
  weights = code.allocateWeights();
  HeadRows queryRows = code.queryRows(tensor(Argument::Query), batch, head);
  code.put(code.fetch(queryRows, first, kBlock.own,
                      shape.scale * std::numbers::log2e_v<float>),
           queries);
  code.put(code.fetch(keyRows, k.i32(0), kBlock.other), tile);
  k.barrier();

  auto state = RunningSoftmax::start(k, code.rowsDown(), code.zeroSums());
  Value limit = k.min(k.add(first, kBlock.own), k.i32(shape.sequence));
  state = stateOf(k.loop(k.i32(0), limit, kBlock.other, state.all(),
                         [&](Value key, ValueRange carried) {
                           return emitKeys(key, stateOf(carried)).all();
                         }));

  Values total = combineEach(k, state.total, code.kAcross,
                             [&](Value x, Value y) { return k.addf(x, y); });
  Values factor;
  for (Value sum : total)
    factor.push_back(k.divf(k.f32(1.0f), sum));
  code.storeRows(state.sums, factor,
                 code.queryRows(tensor(Argument::Output), batch, head), first);
  emitLogsumexp(state.highest, total, batch, head);
}

RunningSoftmax GpuForwardCode::emitKeys(Value key, RunningSoftmax state) {
  // Reads come early: the tile takes their values when its rows are done with.
  Values next = code.fetch(valueRows, key, kBlock.other);
  Values scores = code.dot(queries, tile);
  k.barrier();
  code.put(next, tile);
  code.putWeights(emitWeights(scores, key, state), weights);
  k.barrier();
  next = code.fetch(keyRows, k.add(key, kBlock.other), kBlock.other);
  state.sums = code.accumulate(weights, tile, state.sums);
  k.barrier();
  code.put(next, tile);
  k.barrier();
  return state;
}

GpuForwardCode::Values GpuForwardCode::emitWeights(Values scores, Value key,
                                                   RunningSoftmax &state) {
  int64_t across = code.rowsAcross();
  Value lowest = k.f32(-std::numeric_limits<float>::infinity());
  Values highest;
  for (int64_t i = 0; i < code.rowsDown(); ++i) {
    // A query sees the keys up to its own position. Those beyond the sequence
    // are not among them.
    Value end = k.add(code.ownPosition(first, i), 1);
    Value most;
    for (int64_t j = 0; j < across; ++j) {
      Value &score = scores[i * across + j];
      score =
          k.select(k.isLess(code.otherPosition(key, j), end), score, lowest);
      most = most ? k.maxf(most, score) : score;
    }
    highest.push_back(most);
  }
  highest = combineEach(k, highest, code.kAcross,
                        [&](Value x, Value y) { return k.maxf(x, y); });
  for (int64_t i = 0; i < code.rowsDown(); ++i) {
    highest[i] = k.maxf(state.highest[i], highest[i]);
    Value shrink = fastExp2(k, k.subf(state.highest[i], highest[i]));
    state.total[i] = k.mulf(state.total[i], shrink);
    for (int64_t j = 0; j < across; ++j) {
      Value &weight = scores[i * across + j];
      weight = fastExp2(k, k.subf(weight, highest[i]));
      state.total[i] = k.addf(state.total[i], weight);
    }
    for (int64_t c = 0; c < code.vectorsAcross(); ++c) {
      Value &sum = state.sums[i * code.vectorsAcross() + c];
      sum = code.scaled(sum, shrink);
    }
  }
  state.highest = highest;
  return scores;
}

void GpuForwardCode::emitLogsumexp(const Values &highest, const Values &total,
                                   Value batch, Value head) {
  Memory line = code.lineOf(
      k.argument(Argument::Logsumexp, k.ops().getF32Type()), batch, head);
  Value ln2 = k.f32(std::numbers::ln2_v<float>);
  k.when(k.isEqual(code.acrossNumber(), k.i32(0)), [&] {
    for (int64_t i = 0; i < code.rowsDown(); ++i) {
      Value position = code.ownPosition(first, i);
      Value value = k.fma(highest[i], ln2, k.log(total[i]));
      k.when(k.isWithin(position, shape.sequence),
             [&] { k.store(value, line, position); });
    }
  });
}

FailureOr<std::string> emitAttention(KernelLibrary &library, Location loc,
                                     const AttentionShape &shape) {
  return emitAttentionKernel(
      library, loc, "attention", shape,
      {Argument::Count, shape.heads, kBlock.own, GpuAttentionCode::kThreads},
      [&](GpuBuilder &k) { GpuForwardCode(k, shape).emit(); });
}

FailureOr<KernelPlan> planAttention(mlir::rota::AttentionOp op,
                                    KernelLibrary &library) {
  AttentionShape shape =
      attentionShape(op.getQuery(), op.getKey(), op.getScale());
  if (failed(checkPlainForm(op)) || failed(checkGpuHeadSize(op, shape)))
    return failure();
  auto symbol = hasMatrixAttention(shape)
                    ? emitMatrixAttention(library, op.getLoc(), shape)
                    : emitAttention(library, op.getLoc(), shape);
  if (failed(symbol))
    return failure();
  using Kind = KernelArgument::Kind;
  KernelPlan plan;
  plan.calls.push_back({*symbol,
                        library.getLaunchShape(*symbol).grid[0],
                        1,
                        {{Kind::Operand, 0},
                         {Kind::Operand, 1},
                         {Kind::Operand, 2},
                         {Kind::Result, 0},
                         {Kind::Result, 1}}});
  return plan;
}

} // namespace

void addGpuAttentionEmitters(KernelEmitters &emitters) {
  emitters.add<planAttention>();
}

} // namespace rota::lowering
