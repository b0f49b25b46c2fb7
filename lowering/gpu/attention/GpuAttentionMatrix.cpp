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
using Values = GpuMatrixCode::Values;

class MatrixForwardCode : MatrixAttentionCode {
public:
  using MatrixAttentionCode::MatrixAttentionCode;

  void emit();

private:
  using Part = GpuMatrixCode;

  /// The state of each part, in order, from one list.
  SmallVector<RunningSoftmax> statesOf(ValueRange all);
  static Values listOf(ArrayRef<RunningSoftmax> states);
  /// The state before the keys.
  RunningSoftmax startState(Part &part, Value batch, Value head);
  /// The sink of the head in the unit of scores; null: there is none.
  Value sinkOf(Value head);
  /// The states after a tile of keys and their values.
  Values emitTile(MatrixTile queries, Value key, Tiles tile, ValueRange before);
  /// Turns scores into weights; updates all but the new keys' share of `sums`.
  void emitWeights(Part &part, Values &scores, RunningSoftmax &state);
  /// sums * shrink, where a maximum of the warp's rows has grown.
  void shrinkSums(Part &part, RunningSoftmax &state, const Values &highest,
                  const Values &shrink);
  /// Writes output and logsumexp.
  void emitResults(Part &part, RunningSoftmax &state, MatrixTile queries,
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
  MatrixTile queries = allocateOwn();
  startOwn(places.queryRows(tensor(Argument::Query), batch, head), first,
           queries);
  SmallVector<RunningSoftmax> states;
  for (Part &part : parts)
    states.push_back(startState(part, batch, head));
  Values carried = walkKeys(keys, first, listOf(states),
                            [&](Value key, Tiles tile, ValueRange before) {
                              return emitTile(queries, key, tile, before);
                            });
  states = statesOf(carried);
  for (auto [part, state] : llvm::zip(parts, states))
    emitResults(part, state, queries, batch, head);
}

SmallVector<RunningSoftmax> MatrixForwardCode::statesOf(ValueRange all) {
  SmallVector<RunningSoftmax> states;
  for (auto [i, part] : llvm::enumerate(parts))
    states.push_back(RunningSoftmax::of(ofPart(all, i), part.laneRows()));
  return states;
}

Values MatrixForwardCode::listOf(ArrayRef<RunningSoftmax> states) {
  Values all;
  for (const RunningSoftmax &state : states)
    all.append(state.all());
  return all;
}

Values MatrixForwardCode::emitTile(MatrixTile queries, Value key, Tiles tile,
                                   ValueRange before) {
  SmallVector<RunningSoftmax> states = statesOf(before);
  SmallVector<Part::Started> dots, sums;
  for (Part &part : parts)
    dots.push_back(part.startDot(queries, tile.first));
  for (auto [part, state, dot] : llvm::zip(parts, states, dots)) {
    Values scores = part.finish(dot);
    bend(scores);
    maskPartial(part, scores, first, key, Queries::Rows);
    emitWeights(part, scores, state);
    sums.push_back(part.startAccumulate(scores, tile.second, state.sums));
  }
  Values all = code.finishAll(sums);
  for (auto [i, state] : llvm::enumerate(states))
    state.sums = Values(ofPart(all, i));
  return listOf(states);
}

void MatrixForwardCode::emitResults(Part &part, RunningSoftmax &state,
                                    MatrixTile queries, Value batch,
                                    Value head) {
  auto add = [&](Value x, Value y) { return k.addf(x, y); };
  Values total = combineEach(k, state.total, part.kRowLanes, add), factor;
  for (Value sum : total)
    factor.push_back(k.divf(k.f32(1.0f), sum));
  for (auto [i, sum] : llvm::enumerate(state.sums))
    sum = k.mulf(sum, factor[part.rowOf(i)]);
  // No other warp reads this warp's rows of queries.
  Memory output = k.argument(Argument::Output, shape.wideElement);
  part.storeRows(state.sums, places.queryRows(output, batch, head), first,
                 shape.sequence, queries);
  k.when(k.isEqual(part.columnOfLane(), k.i32(0)), [&] {
    for (int64_t row = 0; row < part.laneRows(); ++row) {
      Value value = k.fma(state.highest[row], k.f32(unit), k.log(total[row]));
      places.storeLogsumexp(value, batch, head,
                            k.add(first, part.rowInBlock(row)));
    }
  });
}

RunningSoftmax MatrixForwardCode::startState(Part &part, Value batch,
                                             Value head) {
  if (!shape.hasPrevious)
    return RunningSoftmax::start(k, part.laneRows(), part.zeroSums(),
                                 sinkOf(head), part.kRowLanes);
  Values highest;
  for (int64_t row = 0; row < part.laneRows(); ++row)
    highest.push_back(
        k.mulf(places.previousLogsumexp(batch, head,
                                        k.add(first, part.rowInBlock(row))),
               k.f32(1.0f / unit)));
  Memory previous = k.argument(Argument::Previous, k.ops().getF32Type());
  return RunningSoftmax::resume(
      k, highest,
      part.loadSums(places.queryRows(previous, batch, head), first,
                    shape.sequence),
      part.kRowLanes);
}

Value MatrixForwardCode::sinkOf(Value head) {
  if (!shape.hasSinks)
    return {};
  Memory sinks = k.argument(Argument::sinks(shape), k.ops().getF32Type());
  return k.mulf(k.load(sinks, k.widen(head)), k.f32(1.0f / unit));
}

void MatrixForwardCode::emitWeights(Part &part, Values &scores,
                                    RunningSoftmax &state) {
  Values highest = state.highest;
  auto largest = [&](Value x, Value y) { return k.largest(x, y); };
  for (auto [i, score] : llvm::enumerate(scores)) {
    Value &most = highest[part.rowOf(i)];
    most = largest(most, score);
  }
  highest = combineEach(k, highest, part.kRowLanes, largest);
  Values shrink, offset;
  for (int64_t row = 0; row < part.laneRows(); ++row) {
    // Exactly 1 where the maximum stays.
    Value less = k.subf(state.highest[row], highest[row]);
    shrink.push_back(fastExp2(k, k.mulf(less, scale)));
    offset.push_back(k.subf(k.f32(0.0f), k.mulf(highest[row], scale)));
    state.total[row] = k.mulf(state.total[row], shrink[row]);
  }
  for (auto [i, score] : llvm::enumerate(scores)) {
    int64_t row = part.rowOf(i);
    score = fastExp2(k, k.fma(score, scale, offset[row]));
    state.total[row] = k.addf(state.total[row], score);
  }
  shrinkSums(part, state, highest, shrink);
  state.highest = highest;
}

void MatrixForwardCode::shrinkSums(Part &part, RunningSoftmax &state,
                                   const Values &highest,
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
          sum = k.mulf(sum, shrink[part.rowOf(i)]);
        return sums;
      },
      [&] { return state.sums; });
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
  MatrixTiling grouped = tiling;
  if (shape.size <= 128)
    grouped.tile = kGroupTile;
  return emitMatrixKernel<MatrixForwardCode>(
      library, loc, "attention_matrix", shape, tiling, grouped,
      Argument::count(shape), shape.heads);
}

} // namespace rota::lowering
