// SPDX-License-Identifier: Apache-2.0
//
// Attention, forward, on matrix instructions of warps (Dao 2023). A block is
// 128 queries of one head and walks over tiles of keys and values. Scores stay
// in registers, where they are the left matrix of the product with the values.
#include "lowering/gpu/attention/GpuAttentionMatrix.h"

#include "lowering/gpu/attention/GpuAttentionMatrixCode.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;

namespace rota::lowering {
namespace {

using Argument = AttentionArgument;

class MatrixForwardCode : MatrixAttentionCode {
public:
  using MatrixAttentionCode::MatrixAttentionCode;

  void emit();

private:
  RunningSoftmax stateOf(ValueRange values) {
    return RunningSoftmax::of(values, code.laneRows());
  }
  /// The state before the keys.
  RunningSoftmax startState(Value batch, Value head);
  /// The sink of the head in the unit of scores; null: there is none.
  Value sinkOf(Value head);
  /// Turns scores into weights; updates all but the new keys' share of `sums`.
  void emitWeights(Values &scores, RunningSoftmax &state);
  /// sums * shrink, where a maximum of the warp's rows has grown.
  void shrinkSums(RunningSoftmax &state, const Values &highest,
                  const Values &shrink);
  void emitLogsumexp(const RunningSoftmax &state, const Values &total,
                     Value batch, Value head);

  Value first; // query of the block, i32
};

void MatrixForwardCode::emit() {
  places.readLastArguments(Argument::last(shape));
  auto [batch, head, start] = places.queryBlock(ownRows());
  first = start;
  Value keyHead = k.div(head, shape.group());
  Sources keys{places.keyRows(tensor(Argument::Key), batch, keyHead),
               places.keyRows(tensor(Argument::Value), batch, keyHead)};
  Memory queries = allocateRows(ownRows());
  startOwn(places.queryRows(tensor(Argument::Query), batch, head), first,
           queries);
  Values carried = walkKeys(keys, first, startState(batch, head).all(),
                            [&](Value key, Tiles tile, ValueRange before) {
                              RunningSoftmax state = stateOf(before);
                              Values scores = products(queries, tile.first);
                              bend(scores);
                              maskPartial(scores, first, key, Queries::Rows);
                              emitWeights(scores, state);
                              code.accumulate(scores, tile.second, state.sums);
                              return state.all();
                            });

  RunningSoftmax state = stateOf(carried);
  auto add = [&](Value x, Value y) { return k.addf(x, y); };
  Values total = combineEach(k, state.total, code.kRowLanes, add), factor;
  for (Value sum : total)
    factor.push_back(k.divf(k.f32(1.0f), sum));
  for (auto [i, sum] : llvm::enumerate(state.sums))
    sum = k.mulf(sum, factor[code.rowOf(i)]);
  // No other warp reads this warp's rows of queries.
  Memory output = k.argument(Argument::Output, shape.wideElement);
  code.storeRows(state.sums, places.queryRows(output, batch, head), first,
                 shape.sequence, queries);
  emitLogsumexp(state, total, batch, head);
}

RunningSoftmax MatrixForwardCode::startState(Value batch, Value head) {
  if (!shape.hasPrevious)
    return RunningSoftmax::start(k, code.laneRows(), code.zeroSums(),
                                 sinkOf(head), code.kRowLanes);
  Values highest;
  for (int64_t row = 0; row < code.laneRows(); ++row)
    highest.push_back(
        k.mulf(places.previousLogsumexp(batch, head,
                                        k.add(first, code.rowInBlock(row))),
               k.f32(1.0f / unit)));
  Memory previous = k.argument(Argument::Previous, k.ops().getF32Type());
  return RunningSoftmax::resume(
      k, highest,
      code.loadSums(places.queryRows(previous, batch, head), first,
                    shape.sequence),
      code.kRowLanes);
}

Value MatrixForwardCode::sinkOf(Value head) {
  if (!shape.hasSinks)
    return {};
  Memory sinks = k.argument(Argument::sinks(shape), k.ops().getF32Type());
  return k.mulf(k.load(sinks, k.widen(head)), k.f32(1.0f / unit));
}

void MatrixForwardCode::emitWeights(Values &scores, RunningSoftmax &state) {
  Values highest = state.highest;
  auto largest = [&](Value x, Value y) { return k.largest(x, y); };
  for (auto [i, score] : llvm::enumerate(scores)) {
    Value &most = highest[code.rowOf(i)];
    most = largest(most, score);
  }
  highest = combineEach(k, highest, code.kRowLanes, largest);
  Values shrink, offset;
  for (int64_t row = 0; row < code.laneRows(); ++row) {
    // Exactly 1 where the maximum stays.
    Value less = k.subf(state.highest[row], highest[row]);
    shrink.push_back(fastExp2(k, k.mulf(less, scale)));
    offset.push_back(k.subf(k.f32(0.0f), k.mulf(highest[row], scale)));
    state.total[row] = k.mulf(state.total[row], shrink[row]);
  }
  for (auto [i, score] : llvm::enumerate(scores)) {
    int64_t row = code.rowOf(i);
    score = fastExp2(k, k.fma(score, scale, offset[row]));
    state.total[row] = k.addf(state.total[row], score);
  }
  shrinkSums(state, highest, shrink);
  state.highest = highest;
}

void MatrixForwardCode::shrinkSums(RunningSoftmax &state, const Values &highest,
                                   const Values &shrink) {
  auto &b = k.ops();
  Value any;
  for (auto [before, after] : llvm::zip(state.highest, highest)) {
    Value grows =
        arith::CmpFOp::create(b, arith::CmpFPredicate::OGT, after, before);
    any = any ? arith::OrIOp::create(b, any, grows) : grows;
  }
  any = NVVM::VoteSyncOp::create(b, b.getI1Type(), k.i32(-1), any,
                                 NVVM::VoteSyncKind::any);
  state.sums = k.choose(
      any,
      [&] {
        Values sums = state.sums;
        for (auto [i, sum] : llvm::enumerate(sums))
          sum = k.mulf(sum, shrink[code.rowOf(i)]);
        return sums;
      },
      [&] { return state.sums; });
}

void MatrixForwardCode::emitLogsumexp(const RunningSoftmax &state,
                                      const Values &total, Value batch,
                                      Value head) {
  k.when(k.isEqual(code.columnOfLane(), k.i32(0)), [&] {
    for (int64_t row = 0; row < code.laneRows(); ++row) {
      Value value = k.fma(state.highest[row], k.f32(unit), k.log(total[row]));
      places.storeLogsumexp(value, batch, head,
                            k.add(first, code.rowInBlock(row)));
    }
  });
}

} // namespace

/// Smaller heads spend most of their time outside of products, and have f32
/// weights on f32 units.
static constexpr int64_t kLeastHeadSize = 32;

bool hasMatrixAttention(const AttentionShape &shape) {
  // Keys and values share stages. The maximum of scores is that of scaled
  // scores.
  return shape.element.isBF16() && shape.size == shape.valueSize &&
         shape.size >= kLeastHeadSize &&
         GpuMatrixCode::hasColumns(shape.size) && shape.scale > 0;
}

FailureOr<std::string> emitMatrixAttention(KernelLibrary &library, Location loc,
                                           const AttentionShape &shape) {
  MatrixTiling tiling{{/*warps=*/4, /*fragments=*/2},
                      /*tile=*/shape.size <= 64 ? 64 : 32,
                      /*resident=*/2};
  // The sums of one fragment take half of the registers.
  if (shape.size > 128)
    tiling = {{/*warps=*/8, /*fragments=*/1}, /*tile=*/32, /*resident=*/1};
  return emitMatrixKernel<MatrixForwardCode>(
      library, loc, "attention_matrix", shape, tiling, Argument::count(shape),
      shape.heads);
}

} // namespace rota::lowering
