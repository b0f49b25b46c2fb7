// SPDX-License-Identifier: Apache-2.0
//
// Attention, backward, on matrix instructions of warps (Dao 2023), but for
// delta. A block is 64 keys of one key head or 64 queries of one head, 16 for
// each of four warps, and walks over tiles of the other rows. Those come by
// asynchronous copies into two stages in turn. Own rows stay in shared memory.
//
//   scores = own * tile', slopes = own * tile', of keys and queries, and of
//   values and cotangents of outputs
//   sums += weights * tile, sums += (weights .* (slopes - delta)) * tile
//
// In the keys' kernel scores are transposed: so weights are left matrices of
// the products that follow, as they lie in registers, in both kernels.
#include "lowering/gpu/GpuAttentionMatrix.h"

#include "lowering/gpu/GpuMatrixCode.h"

#include "llvm/Support/MathExtras.h"

#include <numbers>

using namespace mlir;

namespace rota::lowering {
namespace {

constexpr int64_t kThreads = 128;
constexpr int64_t kBlock = 64; // own rows

using Argument = AttentionGradArgument;
using Values = GpuMatrixCode::Values;

/// Rows of one tile: two sums for each column of the head must fit into
/// registers, and two blocks into a multiprocessor's shared memory.
int64_t tileRowsOf(const AttentionShape &shape) {
  return shape.size <= 64 ? 64 : 32;
}

/// The common part of the two kernels below.
class MatrixBackwardCode {
public:
  MatrixBackwardCode(GpuBuilder &k, const AttentionShape &shape)
      : k(k), shape(shape), places(k, shape), code(k, shape.size, kThreads),
        tileRows(tileRowsOf(shape)),
        scale(k.f32(shape.scale * std::numbers::log2e_v<float>)) {}

protected:
  /// Queries and the cotangents of their outputs, or keys and values: scores
  /// are products of the first ones, the weights' cotangents of the others.
  struct Sources {
    HeadRows first, second;
  };
  struct Tiles {
    Memory first, second;
  };

  Memory tensor(unsigned i) { return k.argument(i, shape.element); }
  Sources querySources(Value batch, Value head) {
    return {places.queryRows(tensor(Argument::Query), batch, head),
            places.queryRows(tensor(Argument::Cotangent), batch, head)};
  }
  Sources keySources(Value batch, Value keyHead) {
    return {places.keyRows(tensor(Argument::Key), batch, keyHead),
            places.keyRows(tensor(Argument::Value), batch, keyHead)};
  }

  void allocate();
  Tiles stageOf(Value number) {
    int64_t rows = tileRows * code.stride();
    Memory first = k.offset(stages, k.mul(number, 2 * rows));
    return {first, k.offset(first, k.i32(rows))};
  }
  void start(Sources rows, Value first, int64_t count, Tiles to);
  /// Starts the next tile's copies where there is one, by start().
  void startNext(Value exists, llvm::function_ref<void()> start);

  struct Weights {
    Values weights, slopes; // slopes: the cotangents of scaled scores
  };
  /// Of own rows and a tile, whose positions begin at `first` and `other`. The
  /// sums number i use line(i): -log2(e) * logsumexp, and delta.
  Weights
  emitWeights(Tiles tile, Value first, Value other,
              GpuMatrixCode::Queries queries,
              llvm::function_ref<std::pair<Value, Value>(int64_t)> line);
  /// Writes sums * factor by way of the warp's rows in `tile`, which no other
  /// warp uses.
  void storeSums(Values sums, float factor, HeadRows rows, Value first,
                 Memory tile);

  GpuBuilder &k;
  AttentionShape shape;
  GpuAttentionPlaces places;
  GpuMatrixCode code;
  int64_t tileRows;
  Value scale; // to the base 2
  Tiles own{};
  Memory stages{};
};

void MatrixBackwardCode::allocate() {
  auto allocateRows = [&](int64_t rows) {
    return k.allocateShared(rows * code.stride(), shape.element);
  };
  own.first = allocateRows(kBlock);
  own.second = allocateRows(kBlock);
  stages = allocateRows(4 * tileRows);
}

void MatrixBackwardCode::start(Sources rows, Value first, int64_t count,
                               Tiles to) {
  code.startCopy(rows.first, first, count, shape.sequence, to.first);
  code.startCopy(rows.second, first, count, shape.sequence, to.second);
}

void MatrixBackwardCode::startNext(Value exists,
                                   llvm::function_ref<void()> start) {
  code.waitForCopies(0);
  k.barrier();
  k.when(exists, start);
  code.endCopyGroup();
}

MatrixBackwardCode::Weights MatrixBackwardCode::emitWeights(
    Tiles tile, Value first, Value other, GpuMatrixCode::Queries queries,
    llvm::function_ref<std::pair<Value, Value>(int64_t)> line) {
  auto products = [&](Memory left, Memory right) {
    auto addresses =
        code.addressesOf(code.ownRows(left), GpuMatrixCode::Order::Left);
    return code.dot([&](int64_t step) { return code.load(addresses, 0, step); },
                    right, tileRows);
  };
  Values weights = products(own.first, tile.first);
  Values slopes = products(own.second, tile.second);
  // Only tiles on the diagonal have pairs that do not see each other.
  bool byQuery = queries == GpuMatrixCode::Queries::Rows;
  Value onDiagonal = byQuery ? k.isLess(first, k.add(other, tileRows))
                             : k.isLess(other, k.add(first, kBlock));
  weights = k.choose(
      onDiagonal,
      [&] {
        Values masked = weights;
        code.mask(masked, k.sub(first, other), queries);
        return masked;
      },
      [&] { return weights; });
  for (auto [i, weight] : llvm::enumerate(weights)) {
    auto [offset, delta] = line(i);
    weight = fastExp2(k, k.fma(weight, scale, offset));
    slopes[i] = k.mulf(weight, k.subf(slopes[i], delta));
  }
  return {weights, slopes};
}

void MatrixBackwardCode::storeSums(Values sums, float factor, HeadRows rows,
                                   Value first, Memory tile) {
  if (factor != 1.0f)
    for (Value &sum : sums)
      sum = k.mulf(sum, k.f32(factor));
  code.storeRows(sums, rows, first, shape.sequence, tile);
}

//===----------------------------------------------------------------------===//
// Keys and values
//===----------------------------------------------------------------------===//

class MatrixKeyCode : MatrixBackwardCode {
public:
  using MatrixBackwardCode::MatrixBackwardCode;

  void emit();

private:
  using Tile = GpuAttentionPlaces::QueryTile;

  /// Starts copies of the queries, their cotangents, logsumexp and delta.
  void startTile(Tile tile, Value stage);
  /// `carried` are sums of keys, sums of values and the number of the stage.
  Values emitTile(Tile tile, Tile next, ValueRange carried);
  /// [logsumexp or delta][tileRows] of a stage.
  Memory lineOf(Value stage, int64_t number) {
    return k.offset(lines,
                    k.add(k.mul(stage, 2 * tileRows), number * tileRows));
  }
  /// The lane's two queries of every eight.
  Values loadLine(Memory line);

  GpuAttentionPlaces::KeyBlock block{};
  Memory lines{};
};

void MatrixKeyCode::emit() {
  block = places.keyBlock(kBlock);
  allocate();
  lines = k.allocateShared(4 * tileRows, k.ops().getF32Type());
  leaveRegistersFor(k, /*blocks=*/2);
  start(keySources(block.batch, block.keyHead), block.first, kBlock, own);
  startTile({places.firstHead(block.keyHead), block.first}, k.i32(0));
  code.endCopyGroup();

  Values carried = code.zeroSums();
  size_t count = carried.size();
  carried.append(code.zeroSums());
  carried.push_back(k.i32(0));
  carried = places.walkQueries(block, tileRows, carried,
                               [&](Tile tile, Tile next, ValueRange before) {
                                 return emitTile(tile, next, before);
                               });
  ValueRange all(carried);
  auto rowsOf = [&](unsigned argument) {
    return places.keyRows(tensor(argument), block.batch, block.keyHead);
  };
  storeSums(Values(all.take_front(count)), shape.scale,
            rowsOf(Argument::FirstResult), block.first, own.first);
  storeSums(Values(all.slice(count, count)), 1.0f,
            rowsOf(Argument::FirstResult + 1), block.first, own.second);
}

void MatrixKeyCode::startTile(Tile tile, Value stage) {
  start(querySources(block.batch, tile.head), tile.first, tileRows,
        stageOf(stage));
  auto [logsumexp, delta] = places.queryLines(block.batch, tile.head);
  code.startLineCopy(logsumexp, tile.first, tileRows, shape.sequence,
                     lineOf(stage, 0));
  code.startLineCopy(delta, tile.first, tileRows, shape.sequence,
                     lineOf(stage, 1));
}

Values MatrixKeyCode::loadLine(Memory line) {
  Values loaded;
  for (int64_t n = 0; n < tileRows / 8; ++n) {
    Value pair = k.loadVector(line, k.add(code.columnOfLane(), 8 * n), 2);
    loaded.push_back(k.extract(pair, 0));
    loaded.push_back(k.extract(pair, 1));
  }
  return loaded;
}

Values MatrixKeyCode::emitTile(Tile tile, Tile next, ValueRange carried) {
  Value stage = carried.back(), other = k.sub(k.i32(1), stage);
  Value end = k.add(places.firstHead(block.keyHead), shape.group());
  startNext(k.isLess(next.head, end), [&] { startTile(next, other); });
  Values logsumexp = loadLine(lineOf(stage, 0));
  Values delta = loadLine(lineOf(stage, 1));
  for (Value &value : logsumexp)
    value = places.toBaseTwo(value);
  // Queries beyond the sequence are zeros, as are their lines: they add zeros.
  Tiles queries = stageOf(stage);
  auto [weights, slopes] =
      emitWeights(queries, block.first, tile.first,
                  GpuMatrixCode::Queries::Columns, [&](int64_t i) {
                    int64_t query = i / 4 * 2 + i % 2;
                    return std::pair(logsumexp[query], delta[query]);
                  });
  size_t count = carried.size() / 2;
  Values sums(carried.take_front(count));
  Values valueSums(carried.slice(count, count));
  code.accumulate(weights, queries.second, valueSums);
  code.accumulate(slopes, queries.first, sums);
  sums.append(valueSums);
  sums.push_back(other);
  return sums;
}

//===----------------------------------------------------------------------===//
// Queries
//===----------------------------------------------------------------------===//

class MatrixQueryCode : MatrixBackwardCode {
public:
  using MatrixBackwardCode::MatrixBackwardCode;

  void emit();

private:
  Values emitTile(Value key, ValueRange before);
  Value stageNumber(Value key) { return k.rem(k.div(key, tileRows), 2); }

  Sources keys{};
  Value first, limit; // of the block's queries, i32
  /// -log2(e) * logsumexp and delta of the lane's two rows.
  SmallVector<std::pair<Value, Value>> lines;
};

void MatrixQueryCode::emit() {
  auto [batch, head, start] = places.queryBlock(kBlock);
  first = start;
  limit = k.min(k.add(first, kBlock), k.i32(shape.sequence));
  keys = keySources(batch, k.div(head, shape.group()));
  allocate();
  leaveRegistersFor(k, /*blocks=*/3);
  MatrixBackwardCode::start(querySources(batch, head), first, kBlock, own);
  MatrixBackwardCode::start(keys, k.i32(0), tileRows, stageOf(k.i32(0)));
  code.endCopyGroup();
  auto queryLines = places.queryLines(batch, head);
  for (int64_t half = 0; half < 2; ++half)
    lines.push_back(
        places.loadLines(queryLines, k.add(first, code.rowInBlock(half))));

  Values sums = k.loop(
      k.i32(0), limit, tileRows, code.zeroSums(),
      [&](Value key, ValueRange before) { return emitTile(key, before); });
  storeSums(sums, shape.scale,
            places.queryRows(tensor(Argument::FirstResult), batch, head), first,
            own.first);
}

Values MatrixQueryCode::emitTile(Value key, ValueRange before) {
  Value next = k.add(key, tileRows);
  startNext(k.isLess(next, limit), [&] {
    MatrixBackwardCode::start(keys, next, tileRows, stageOf(stageNumber(next)));
  });
  // Keys beyond the sequence are beyond every query in it.
  Tiles tile = stageOf(stageNumber(key));
  Values slopes =
      emitWeights(tile, first, key, GpuMatrixCode::Queries::Rows,
                  [&](int64_t i) { return lines[GpuMatrixCode::halfOf(i)]; })
          .slopes;
  Values sums(before);
  code.accumulate(slopes, tile.first, sums);
  return sums;
}

} // namespace

FailureOr<std::string> emitMatrixKeyGrad(KernelLibrary &library, Location loc,
                                         const AttentionShape &shape) {
  return emitAttentionKernel(
      library, loc, "attention_matrix_key_grad", shape,
      {Argument::FirstResult + 2, shape.keyHeads, kBlock, kThreads},
      [&](GpuBuilder &k) { MatrixKeyCode(k, shape).emit(); });
}

FailureOr<std::string> emitMatrixQueryGrad(KernelLibrary &library, Location loc,
                                           const AttentionShape &shape) {
  return emitAttentionKernel(
      library, loc, "attention_matrix_query_grad", shape,
      {Argument::FirstResult + 1, shape.heads, kBlock, kThreads},
      [&](GpuBuilder &k) { MatrixQueryCode(k, shape).emit(); });
}

} // namespace rota::lowering
