// SPDX-License-Identifier: Apache-2.0
//
// Attention, forward, on a GPU's f32 units (Dao et al. 2022, algorithm 1). A
// block of threads does a block of queries of one head and walks over the keys
// that they see in ascending order with a running maximum and sum. Scores are
// to the base 2: queries are scaled by log2(e) too.
#include "lowering/gpu/attention/GpuAttentionCode.h"
#include "lowering/gpu/attention/GpuAttentionMatrix.h"

#include <limits>
#include <numbers>

using namespace mlir;

namespace rota::lowering {
namespace {

/// Keys and values of one size are in one tile in turns. Those of two sizes
/// have a tile each, which must fit into 163 KiB.
AttentionBlock blockOf(const AttentionShape &shape) {
  bool areWide = shape.size != shape.valueSize && shape.largestSize() > 128;
  return {/*own=*/64, /*other=*/areWide ? 32 : 64};
}

using Argument = AttentionArgument;

class GpuForwardCode {
public:
  using Values = GpuAttentionCode::Values;

  GpuForwardCode(GpuBuilder &k, const AttentionShape &shape)
      : k(k), shape(shape), code(k, shape, blockOf(shape)),
        block(code.block()) {}

  void emit();

private:
  RunningSoftmax stateOf(ValueRange values) {
    return RunningSoftmax::of(values, code.rowsDown());
  }

  /// The state before the keys.
  RunningSoftmax startState(Value batch, Value head);
  /// The sink of the head to the base 2; null: there is none.
  Value sinkOf(Value head);
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
  AttentionBlock block;
  StridedRows keyRows{}, valueRows{};
  SharedTile queries{}, keys{}, values{}, weights{};
  Value first; // query of the block, i32
};

void GpuForwardCode::emit() {
  code.readLastArguments(Argument::last(shape));
  auto [batch, head, start] = code.queryBlock(block.own);
  first = start;
  Value keyHead = k.div(head, shape.group());
  keyRows = code.keyRows(tensor(Argument::Key), batch, keyHead);
  valueRows = code.valueRows(tensor(Argument::Value), batch, keyHead);
  queries = code.allocateRows(block.own, shape.size);
  keys = values = code.allocateRows(block.other, shape.size);
  if (shape.valueSize != shape.size)
    values = code.allocateRows(block.other, shape.valueSize);
  weights = code.allocateWeights();
  StridedRows queryRows = code.queryRows(tensor(Argument::Query), batch, head);
  code.put(code.fetch(queryRows, first, block.own, code.productScale()),
           queries);
  Value begin = code.keyBegin(first, block.other);
  code.put(code.fetch(keyRows, begin, block.other), keys);
  k.barrier();

  RunningSoftmax state = startState(batch, head);
  state =
      stateOf(k.loop(begin, code.keyEnd(begin, first, block.own), block.other,
                     state.all(), [&](Value key, ValueRange carried) {
                       return emitKeys(key, stateOf(carried)).all();
                     }));

  Values total = combineEach(k, state.total, code.kAcross,
                             [&](Value x, Value y) { return k.addf(x, y); });
  Values factor;
  for (Value sum : total)
    factor.push_back(k.divf(k.f32(1.0f), sum));
  Memory output = k.argument(Argument::Output, shape.wideElement);
  code.storeRows(state.sums, factor, code.outputRows(output, batch, head),
                 first);
  emitLogsumexp(state.highest, total, batch, head);
}

RunningSoftmax GpuForwardCode::startState(Value batch, Value head) {
  if (!shape.hasPrevious)
    return RunningSoftmax::start(k, code.rowsDown(),
                                 code.zeroSums(shape.valueSize), sinkOf(head),
                                 code.kAcross);
  Values highest;
  for (int64_t i = 0; i < code.rowsDown(); ++i)
    highest.push_back(
        k.mulf(code.previousLogsumexp(batch, head, code.ownPosition(first, i)),
               k.f32(std::numbers::log2e_v<float>)));
  Memory previous = k.argument(Argument::Previous, k.ops().getF32Type());
  return RunningSoftmax::resume(
      k, highest, code.loadSums(code.outputRows(previous, batch, head), first),
      code.kAcross);
}

Value GpuForwardCode::sinkOf(Value head) {
  if (!shape.hasSinks)
    return {};
  Memory sinks = k.argument(Argument::sinks(shape), k.ops().getF32Type());
  return k.mulf(k.load(sinks, k.widen(head)),
                k.f32(std::numbers::log2e_v<float>));
}

RunningSoftmax GpuForwardCode::emitKeys(Value key, RunningSoftmax state) {
  // Reads come early: the tile takes their values when its rows are done with.
  Values next = code.fetch(valueRows, key, block.other);
  Values scores = code.dot(queries, keys);
  k.barrier();
  code.put(next, values);
  code.putWeights(emitWeights(scores, key, state), weights);
  k.barrier();
  next = code.fetch(keyRows, k.add(key, block.other), block.other);
  state.sums = code.accumulate(weights, values, state.sums);
  k.barrier();
  code.put(next, keys);
  k.barrier();
  return state;
}

GpuForwardCode::Values GpuForwardCode::emitWeights(Values scores, Value key,
                                                   RunningSoftmax &state) {
  int64_t across = code.rowsAcross();
  Value lowest = k.f32(-std::numeric_limits<float>::infinity());
  Values highest;
  for (int64_t i = 0; i < code.rowsDown(); ++i) {
    Value query = code.ownPosition(first, i), most;
    Value start = shape.hasDocuments ? code.documentStart(query) : Value();
    for (int64_t j = 0; j < across; ++j) {
      Value &score = scores[i * across + j];
      score = code.scoreOf(score).value;
      if (Value sees = code.sees(query, code.otherPosition(key, j), start))
        score = k.select(sees, score, lowest);
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
    int64_t vectors = code.vectorsAcross(shape.valueSize);
    for (int64_t c = 0; c < vectors; ++c) {
      Value &sum = state.sums[i * vectors + c];
      sum = code.scaled(sum, shrink);
    }
  }
  state.highest = highest;
  return scores;
}

void GpuForwardCode::emitLogsumexp(const Values &highest, const Values &total,
                                   Value batch, Value head) {
  Value ln2 = k.f32(std::numbers::ln2_v<float>);
  k.when(k.isEqual(code.acrossNumber(), k.i32(0)), [&] {
    for (int64_t i = 0; i < code.rowsDown(); ++i) {
      Value value = k.fma(highest[i], ln2, k.log(total[i]));
      code.storeLogsumexp(value, batch, head, code.ownPosition(first, i));
    }
  });
}

FailureOr<std::string> emitAttention(KernelLibrary &library, Location loc,
                                     const AttentionShape &shape) {
  return emitAttentionKernel(
      library, loc, "attention", shape,
      {Argument::count(shape), shape.heads, blockOf(shape).own,
       GpuAttentionCode::kThreads},
      [&](GpuBuilder &k) { GpuForwardCode(k, shape).emit(); });
}

FailureOr<KernelPlan> planAttention(mlir::rota::AttentionOp op,
                                    KernelLibrary &library) {
  AttentionShape shape = attentionShape(op);
  if (failed(checkGpuHeadSize(op, shape)))
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
  addInitialState(op, plan.calls.back());
  addPosition(op, shape, plan.calls.back(), Kind::Scalar);
  return plan;
}

} // namespace

void addGpuAttentionEmitters(KernelEmitters &emitters) {
  emitters.add<planAttention>();
}

} // namespace rota::lowering
