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
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/Support/MathExtras.h"

#include <limits>
#include <numbers>

using namespace mlir;

namespace rota::lowering {
namespace {

constexpr int64_t kThreads = 128;
constexpr int64_t kBlock = 64; // queries, and keys of a tile
constexpr int64_t kSteps = kBlock / GpuMatrixCode::kRows;
constexpr float kLowest = -std::numeric_limits<float>::infinity();

using Argument = AttentionArgument;

class MatrixForwardCode {
public:
  using Values = SmallVector<Value>;

  MatrixForwardCode(GpuBuilder &k, const AttentionShape &shape)
      : k(k), shape(shape), places(k, shape), code(k, shape.size, kThreads) {}

  void emit();

private:
  /// Of a lane's two rows: the maximum, its share of the sum; and four sums for
  /// each eight columns of the head.
  struct State {
    Values highest, total, sums;
    Values all() const {
      Values values(highest);
      values.append(total);
      values.append(sums);
      return values;
    }
  };
  static State stateOf(ValueRange values) {
    return {Values(values.take_front(2)), Values(values.slice(2, 2)),
            Values(values.drop_front(4))};
  }

  Memory tensor(unsigned i) { return k.argument(i, shape.element); }
  /// The stage of the tile that begins at `key`, or the other one.
  Memory stageOf(Value key, int64_t turn = 0);
  Memory valuesOf(Memory stage) {
    return k.offset(stage, k.i32(kBlock * shape.size));
  }
  void startTile(Value key, Memory stage);
  void loadQueries(HeadRows rows);

  State emitTile(Value key, Memory stage, State state, bool isMasked);
  Values emitScores(Memory stage);
  void mask(Values &scores);
  /// Turns scores into weights; updates all but the new keys' share of `sums`.
  void emitWeights(Values &scores, State &state);
  /// sums * shrink, where a maximum of the warp's rows has grown.
  void shrinkSums(State &state, const Values &highest, const Values &shrink);
  void addValues(const Values &weights, Memory stage, Values &sums);
  void emitLogsumexp(const State &state, const Values &total, Value batch,
                     Value head);
  /// The lane's row number `half`, in the block.
  Value rowInBlock(int64_t half);
  /// The maxima or sums of the four lanes that share rows.
  Values acrossLanes(const Values &values,
                     llvm::function_ref<Value(Value, Value)> join);

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
  leaveRegistersFor(k, shape.size == 64 ? 3 : 2);
  scale = k.f32(shape.scale * std::numbers::log2e_v<float>);
  stages = k.allocateShared(4 * kBlock * shape.size, shape.element);
  loadQueries(places.queryRows(tensor(Argument::Query), batch, head));

  State state{Values(2, k.f32(kLowest)), Values(2, k.f32(0.0f)),
              Values(shape.size / 2, k.f32(0.0f))};
  // All keys of the tiles before the block's own are seen.
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
  Values total = acrossLanes(state.total, add);
  for (auto [i, sum] : llvm::enumerate(state.sums))
    sum = k.mulf(sum, k.divf(k.f32(1.0f), total[i / 2 % 2]));
  // No warp reads the other stage after the last barrier.
  code.storeRows(state.sums,
                 places.queryRows(tensor(Argument::Output), batch, head), first,
                 shape.sequence, stageOf(first, 1));
  emitLogsumexp(state, total, batch, head);
}

Memory MatrixForwardCode::stageOf(Value key, int64_t turn) {
  Value number = k.rem(k.add(k.div(key, kBlock), turn), 2);
  return k.offset(stages, k.mul(number, 2 * kBlock * shape.size));
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
  for (int64_t step = 0; step < shape.size / GpuMatrixCode::kRows; ++step)
    queries.push_back(code.load(addresses, 0, step));
}

MatrixForwardCode::State MatrixForwardCode::emitTile(Value key, Memory stage,
                                                     State state,
                                                     bool isMasked) {
  Values scores = emitScores(stage);
  if (isMasked)
    mask(scores);
  emitWeights(scores, state);
  addValues(scores, valuesOf(stage), state.sums);
  return state;
}

MatrixForwardCode::Values MatrixForwardCode::emitScores(Memory stage) {
  auto keys = code.addressesOf(stage, GpuMatrixCode::Order::Right);
  Values scores(kBlock / 2, k.f32(0.0f));
  GpuMatrixCode::Sums all(scores);
  for (auto [step, left] : llvm::enumerate(queries))
    for (int64_t n = 0; n < kSteps; ++n) {
      auto right = code.load(keys, n * GpuMatrixCode::kRows, step);
      for (int64_t half = 0; half < 2; ++half)
        code.multiplyAdd(left, right, half, all.slice((2 * n + half) * 4, 4));
    }
  return scores;
}

Value MatrixForwardCode::rowInBlock(int64_t half) {
  return k.add(
      k.add(k.mul(code.warpNumber(), GpuMatrixCode::kRows), code.rowOfLane()),
      half * GpuMatrixCode::kRows / 2);
}

/// In the tile on the diagonal, rows see keys up to their own number. Keys
/// beyond the sequence are not among them.
void MatrixForwardCode::mask(Values &scores) {
  for (auto [i, score] : llvm::enumerate(scores)) {
    int64_t half = i / 2 % 2, column = i / 4 * 8 + i % 2;
    Value before = k.sub(rowInBlock(half), code.columnOfLane());
    Value sees = k.isLess(k.i32(column - 1), before);
    score = k.select(sees, score, k.f32(kLowest));
  }
}

MatrixForwardCode::Values
MatrixForwardCode::acrossLanes(const Values &values,
                               llvm::function_ref<Value(Value, Value)> join) {
  return k.combineThreads(values, 4, [&](ValueRange x, ValueRange y) {
    Values joined;
    for (auto [left, right] : llvm::zip(x, y))
      joined.push_back(join(left, right));
    return joined;
  });
}

void MatrixForwardCode::emitWeights(Values &scores, State &state) {
  Values highest = state.highest;
  auto largest = [&](Value x, Value y) { return k.largest(x, y); };
  for (auto [i, score] : llvm::enumerate(scores)) {
    Value &most = highest[i / 2 % 2];
    most = largest(most, score);
  }
  highest = acrossLanes(highest, largest);
  Values shrink, offset;
  for (int64_t half = 0; half < 2; ++half) {
    // Exactly 1 where the maximum stays.
    Value less = k.subf(state.highest[half], highest[half]);
    shrink.push_back(fastExp2(k, k.mulf(less, scale)));
    offset.push_back(k.subf(k.f32(0.0f), k.mulf(highest[half], scale)));
    state.total[half] = k.mulf(state.total[half], shrink[half]);
  }
  for (auto [i, score] : llvm::enumerate(scores)) {
    int64_t half = i / 2 % 2;
    score = fastExp2(k, k.fma(score, scale, offset[half]));
    state.total[half] = k.addf(state.total[half], score);
  }
  shrinkSums(state, highest, shrink);
  state.highest = highest;
}

void MatrixForwardCode::shrinkSums(State &state, const Values &highest,
                                   const Values &shrink) {
  auto &b = k.ops();
  auto grows = [&](int64_t half) -> Value {
    return arith::CmpFOp::create(b, arith::CmpFPredicate::OGT, highest[half],
                                 state.highest[half]);
  };
  Value any = arith::OrIOp::create(b, grows(0), grows(1));
  any = NVVM::VoteSyncOp::create(b, b.getI1Type(), k.i32(-1), any,
                                 NVVM::VoteSyncKind::any);
  OpBuilder::InsertionGuard guard(b);
  auto yield = [&](bool isShrunk) {
    return [&, isShrunk](OpBuilder &inner, Location) {
      b.setInsertionPointToEnd(inner.getInsertionBlock());
      Values sums = state.sums;
      for (auto [i, sum] : llvm::enumerate(sums))
        sum = isShrunk ? k.mulf(sum, shrink[i / 2 % 2]) : sum;
      scf::YieldOp::create(b, sums);
    };
  };
  state.sums =
      scf::IfOp::create(b, any, yield(true), yield(false)).getResults();
}

void MatrixForwardCode::addValues(const Values &weights, Memory tile,
                                  Values &sums) {
  auto values = code.addressesOf(tile, GpuMatrixCode::Order::Left);
  GpuMatrixCode::Sums all(sums);
  for (int64_t n = 0; n < kSteps; ++n) {
    // Two neighbouring 16 x 8 scores are a left matrix of 16 x 16.
    const Value *w = &weights[n * 8];
    GpuMatrixCode::Fragment left = {
        code.pack(w[0], w[1]), code.pack(w[2], w[3]), code.pack(w[4], w[5]),
        code.pack(w[6], w[7])};
    for (int64_t step = 0; step < shape.size / GpuMatrixCode::kRows; ++step) {
      auto right = code.load(values, n * GpuMatrixCode::kRows, step,
                             /*transposed=*/true);
      for (int64_t half = 0; half < 2; ++half)
        code.multiplyAdd(left, right, half,
                         all.slice((2 * step + half) * 4, 4));
    }
  }
}

void MatrixForwardCode::emitLogsumexp(const State &state, const Values &total,
                                      Value batch, Value head) {
  Memory line = places.lineOf(
      k.argument(Argument::Logsumexp, k.ops().getF32Type()), batch, head);
  k.when(k.isEqual(code.columnOfLane(), k.i32(0)), [&] {
    for (int64_t half = 0; half < 2; ++half) {
      Value position = k.add(first, rowInBlock(half));
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
  int64_t blocks =
      shape.batch * shape.heads * llvm::divideCeil(shape.sequence, kBlock);
  return emitGpuKernel(library, loc, "attention_matrix", toString(shape),
                       Argument::Count, blocks, kThreads, [&](GpuBuilder &k) {
                         MatrixForwardCode(k, shape).emit();
                       });
}

} // namespace rota::lowering
