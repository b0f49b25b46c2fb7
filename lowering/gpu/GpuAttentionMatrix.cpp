// SPDX-License-Identifier: Apache-2.0
//
// Attention, forward, on matrix instructions of warps (Dao 2023). A block is 64
// queries of one head, 16 for each of four warps, with the queries in
// registers. Tiles of 64 keys and values come by asynchronous copies into two
// stages in turn: one is read while the other is written. Scores stay in
// registers, where they are the left matrix of the product with the values.
#include "lowering/gpu/GpuAttentionMatrix.h"

#include "lowering/gpu/GpuMatrixCode.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/Support/MathExtras.h"

#include <numbers>

using namespace mlir;

namespace rota::lowering {
namespace {

constexpr int64_t kThreads = 128;
constexpr int64_t kBlock = 64; // queries, and keys of a tile
constexpr int64_t kLaneRows = 2, kRowLanes = 4;

using Argument = AttentionArgument;

class MatrixForwardCode {
public:
  using Values = GpuMatrixCode::Values;

  MatrixForwardCode(GpuBuilder &k, const AttentionShape &shape)
      : k(k), shape(shape), places(k, shape), code(k, shape.size, kThreads) {}

  void emit();

private:
  Memory tensor(unsigned i) { return k.argument(i, shape.element); }
  /// The stage of the tile that begins at `key`, or the other one.
  Memory stageOf(Value key, int64_t turn = 0);
  Memory valuesOf(Memory stage) {
    return k.offset(stage, k.i32(kBlock * code.stride()));
  }
  void startTile(Value key, Memory stage);
  void loadQueries(HeadRows rows);

  RunningSoftmax emitTile(Value key, Memory stage, RunningSoftmax state,
                          bool isMasked);
  /// Turns scores into weights; updates all but the new keys' share of `sums`.
  void emitWeights(Values &scores, RunningSoftmax &state);
  /// sums * shrink, where a maximum of the warp's rows has grown.
  void shrinkSums(RunningSoftmax &state, const Values &highest,
                  const Values &shrink);
  void emitLogsumexp(const RunningSoftmax &state, const Values &total,
                     Value batch, Value head);

  GpuBuilder &k;
  AttentionShape shape;
  GpuAttentionPlaces places;
  GpuMatrixCode code;
  Memory stages{};
  HeadRows keyRows{}, valueRows{};
  SmallVector<GpuMatrixCode::Fragment> queries; // by 16 columns
  Value first;                                  // query of the block, i32
  Value scale;                                  // to the base 2
};

void MatrixForwardCode::emit() {
  auto [batch, head, start] = places.queryBlock(kBlock);
  first = start;
  Value keyHead = k.div(head, shape.group());
  keyRows = places.keyRows(tensor(Argument::Key), batch, keyHead);
  valueRows = places.keyRows(tensor(Argument::Value), batch, keyHead);
  leaveRegistersFor(k, shape.size <= 64 ? 3 : 2);
  scale = k.f32(shape.scale * std::numbers::log2e_v<float>);
  stages = k.allocateShared(4 * kBlock * code.stride(), shape.element);
  loadQueries(places.queryRows(tensor(Argument::Query), batch, head));

  auto state = RunningSoftmax::start(k, kLaneRows, code.zeroSums());
  // All keys of the tiles before the block's own are seen.
  auto stateOf = [](ValueRange values) {
    return RunningSoftmax::of(values, kLaneRows);
  };
  state = stateOf(k.loop(
      k.i32(0), first, kBlock, state.all(), [&](Value key, ValueRange carried) {
        code.waitForCopies(0);
        k.barrier();
        startTile(k.add(key, kBlock), stageOf(key, 1));
        return emitTile(key, stageOf(key), stateOf(carried), false).all();
      }));
  code.waitForCopies(0);
  k.barrier();
  state = emitTile(first, stageOf(first), state, true);

  auto add = [&](Value x, Value y) { return k.addf(x, y); };
  Values total = combineEach(k, state.total, kRowLanes, add);
  for (auto [i, sum] : llvm::enumerate(state.sums))
    sum = k.mulf(sum, k.divf(k.f32(1.0f), total[GpuMatrixCode::halfOf(i)]));
  // No warp reads the other stage after the last barrier.
  code.storeRows(state.sums,
                 places.queryRows(tensor(Argument::Output), batch, head), first,
                 shape.sequence, stageOf(first, 1));
  emitLogsumexp(state, total, batch, head);
}

Memory MatrixForwardCode::stageOf(Value key, int64_t turn) {
  Value number = k.rem(k.add(k.div(key, kBlock), turn), 2);
  return k.offset(stages, k.mul(number, 2 * kBlock * code.stride()));
}

void MatrixForwardCode::startTile(Value key, Memory stage) {
  code.startCopy(keyRows, key, kBlock, shape.sequence, stage);
  code.startCopy(valueRows, key, kBlock, shape.sequence, valuesOf(stage));
  code.endCopyGroup();
}

/// The first tile is on its way meanwhile. The stage that the queries pass
/// through is written again after the next barrier.
void MatrixForwardCode::loadQueries(HeadRows rows) {
  Memory stage = stageOf(k.i32(0), 1);
  code.startCopy(rows, first, kBlock, shape.sequence, stage);
  code.endCopyGroup();
  startTile(k.i32(0), stageOf(k.i32(0)));
  code.waitForCopies(1);
  k.barrier();
  auto addresses =
      code.addressesOf(code.ownRows(stage), GpuMatrixCode::Order::Left);
  for (int64_t step = 0; step < code.steps(); ++step)
    queries.push_back(code.load(addresses, 0, step));
}

RunningSoftmax MatrixForwardCode::emitTile(Value key, Memory stage,
                                           RunningSoftmax state,
                                           bool isMasked) {
  Values scores =
      code.dot([&](int64_t step) { return queries[step]; }, stage, kBlock);
  // Keys beyond the sequence are in the tile on the diagonal.
  if (isMasked)
    code.mask(scores, k.i32(0), GpuMatrixCode::Queries::Rows);
  emitWeights(scores, state);
  code.accumulate(scores, valuesOf(stage), state.sums);
  return state;
}

void MatrixForwardCode::emitWeights(Values &scores, RunningSoftmax &state) {
  Values highest = state.highest;
  auto largest = [&](Value x, Value y) { return k.largest(x, y); };
  for (auto [i, score] : llvm::enumerate(scores)) {
    Value &most = highest[GpuMatrixCode::halfOf(i)];
    most = largest(most, score);
  }
  highest = combineEach(k, highest, kRowLanes, largest);
  Values shrink, offset;
  for (int64_t half = 0; half < kLaneRows; ++half) {
    // Exactly 1 where the maximum stays.
    Value less = k.subf(state.highest[half], highest[half]);
    shrink.push_back(fastExp2(k, k.mulf(less, scale)));
    offset.push_back(k.subf(k.f32(0.0f), k.mulf(highest[half], scale)));
    state.total[half] = k.mulf(state.total[half], shrink[half]);
  }
  for (auto [i, score] : llvm::enumerate(scores)) {
    int64_t half = GpuMatrixCode::halfOf(i);
    score = fastExp2(k, k.fma(score, scale, offset[half]));
    state.total[half] = k.addf(state.total[half], score);
  }
  shrinkSums(state, highest, shrink);
  state.highest = highest;
}

void MatrixForwardCode::shrinkSums(RunningSoftmax &state, const Values &highest,
                                   const Values &shrink) {
  auto &b = k.ops();
  auto grows = [&](int64_t half) -> Value {
    return arith::CmpFOp::create(b, arith::CmpFPredicate::OGT, highest[half],
                                 state.highest[half]);
  };
  Value any = arith::OrIOp::create(b, grows(0), grows(1));
  any = NVVM::VoteSyncOp::create(b, b.getI1Type(), k.i32(-1), any,
                                 NVVM::VoteSyncKind::any);
  state.sums = k.choose(
      any,
      [&] {
        Values sums = state.sums;
        for (auto [i, sum] : llvm::enumerate(sums))
          sum = k.mulf(sum, shrink[GpuMatrixCode::halfOf(i)]);
        return sums;
      },
      [&] { return state.sums; });
}

void MatrixForwardCode::emitLogsumexp(const RunningSoftmax &state,
                                      const Values &total, Value batch,
                                      Value head) {
  Memory line = places.lineOf(
      k.argument(Argument::Logsumexp, k.ops().getF32Type()), batch, head);
  k.when(k.isEqual(code.columnOfLane(), k.i32(0)), [&] {
    for (int64_t half = 0; half < kLaneRows; ++half) {
      Value position = k.add(first, code.rowInBlock(half));
      Value value =
          k.fma(state.highest[half], k.f32(shape.scale), k.log(total[half]));
      k.when(k.isWithin(position, shape.sequence),
             [&] { k.store(value, line, position); });
    }
  });
}

} // namespace

bool hasMatrixAttention(const AttentionShape &shape) {
  // The maximum of scores is that of scaled scores.
  return shape.element.isBF16() && GpuMatrixCode::hasColumns(shape.size) &&
         shape.scale > 0;
}

FailureOr<std::string> emitMatrixAttention(KernelLibrary &library, Location loc,
                                           const AttentionShape &shape) {
  return emitAttentionKernel(
      library, loc, "attention_matrix", shape,
      {Argument::Count, shape.heads, kBlock, kThreads},
      [&](GpuBuilder &k) { MatrixForwardCode(k, shape).emit(); });
}

} // namespace rota::lowering
