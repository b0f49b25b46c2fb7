// SPDX-License-Identifier: Apache-2.0
//
// Attention, backward, on matrix instructions of warps (Dao 2023), but for
// delta. A block has keys of one key head and walks over the queries of its
// heads, or queries of one head and walks over keys.
//
//   scores = own * tile', slopes = own * tile', of keys and queries, and of
//   values and cotangents of outputs
//   sums += weights * tile, sums += (weights .* (slopes - delta)) * tile
//
// In the keys' kernel scores are transposed: so weights are left matrices of
// the products that follow, as they lie in registers, in both kernels.
#include "lowering/gpu/attention/GpuAttentionMatrix.h"

#include "lowering/gpu/attention/GpuAttentionMatrixCode.h"

using namespace mlir;

namespace rota::lowering {
namespace {

using Argument = AttentionGradArgument;
using Values = GpuMatrixCode::Values;

/// The common part of the two kernels below.
class MatrixBackwardCode : public MatrixAttentionCode {
public:
  MatrixBackwardCode(GpuBuilder &k, const AttentionShape &shape,
                     const MatrixTiling &tiling)
      : MatrixAttentionCode(k, shape, tiling),
        own{allocateRows(ownRows()), allocateRows(ownRows())} {}

protected:
  Sources querySources(Value batch, Value head) {
    return {places.queryRows(tensor(Argument::Query), batch, head),
            places.queryRows(tensor(Argument::Cotangent), batch, head)};
  }
  Sources keySources(Value batch, Value keyHead) {
    return {places.keyRows(tensor(Argument::Key), batch, keyHead),
            places.keyRows(tensor(Argument::Value), batch, keyHead)};
  }
  void startOwn(const Sources &rows, Value first) {
    MatrixAttentionCode::startOwn(rows.first, first, own.first);
    MatrixAttentionCode::startOwn(rows.second, first, own.second);
  }

  struct Weights {
    Values weights;
    Values slopes; // the cotangents of scaled scores, where asked for
  };
  /// Weights of the own rows and a tile, whose positions begin at `first` and
  /// `other`. Product element i has line(i): -log2(e) * logsumexp, and delta.
  Weights
  emitWeights(Tiles tile, Value first, Value other, Queries queries,
              bool withSlopes,
              llvm::function_ref<std::pair<Value, Value>(int64_t)> line);
  /// Writes sums * factor by way of the warp's rows in `tile`, which no other
  /// warp uses.
  void storeSums(Values sums, float factor, HeadRows rows, Value first,
                 Memory tile);

  Tiles own;
};

MatrixBackwardCode::Weights MatrixBackwardCode::emitWeights(
    Tiles tile, Value first, Value other, Queries queries, bool withSlopes,
    llvm::function_ref<std::pair<Value, Value>(int64_t)> line) {
  Values weights = products(own.first, tile.first);
  Values slopes;
  if (withSlopes)
    slopes = products(own.second, tile.second);
  bend(weights);
  bool isCapped = shape.softCap != 0.0f;
  auto lessDelta = [&](int64_t i) { return k.subf(slopes[i], line(i).second); };
  if (withSlopes && isCapped)
    // Before the mask, which makes scores infinite.
    for (auto [i, bent] : llvm::enumerate(weights))
      slopes[i] = k.mulf(lessDelta(i), k.subf(k.f32(1.0f), k.mulf(bent, bent)));
  maskPartial(weights, first, other, queries);
  for (auto [i, weight] : llvm::enumerate(weights)) {
    weight = fastExp2(k, k.fma(weight, scale, line(i).first));
    if (withSlopes)
      slopes[i] = k.mulf(weight, isCapped ? slopes[i] : lessDelta(i));
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

/// Blocks that share keys: sums of keys and of values of heads beyond 128 do
/// not fit in registers together.
int64_t partsOf(const AttentionShape &shape) {
  return shape.size <= 128 ? 1 : 2;
}

class MatrixKeyCode : MatrixBackwardCode {
public:
  MatrixKeyCode(GpuBuilder &k, const AttentionShape &shape,
                const MatrixTiling &tiling)
      : MatrixBackwardCode(k, shape, tiling),
        lines(k.allocateShared(4 * tiling.tile, k.ops().getF32Type())) {}

  void emit();

private:
  using Tile = GpuAttentionBlocks::QueryTile;

  /// Starts copies of the queries, their cotangents, logsumexp and delta.
  void startQueries(Tile tile, Value stage);
  /// The cotangents that a block sums.
  enum class Sums { Keys, Values, Both };
  void walk(Sums sums);
  /// `carried` are the sums, of keys before values, and the number of the
  /// stage.
  Values emitTile(Tile tile, Tile next, Sums sums, ValueRange carried);
  /// [logsumexp or delta][tiling.tile] of a stage.
  Memory lineOf(Value stage, int64_t number) {
    return k.offset(lines,
                    k.add(k.mul(stage, 2 * tiling.tile), number * tiling.tile));
  }
  /// The lane's two queries of every eight.
  Values loadLine(Memory line);

  GpuAttentionBlocks::KeyBlock block{};
  Memory lines;
};

void MatrixKeyCode::emit() {
  places.readLastArguments(Argument::FirstResult + 2);
  int64_t parts = partsOf(shape);
  block = places.keyBlock(ownRows(), parts);
  startOwn(keySources(block.batch, block.keyHead), block.first);
  if (parts == 1)
    walk(Sums::Both);
  else
    k.branch(
        k.isEqual(block.part, k.i32(0)), [&] { walk(Sums::Keys); },
        [&] { walk(Sums::Values); });
}

void MatrixKeyCode::walk(Sums sums) {
  Tile first = places.firstTile(block, tiling.tile);
  startFirst(k.isLess(first.first,
                      places.queryEnd(block, ownRows(), tiling.tile, first)),
             [&] { startQueries(first, k.i32(0)); });
  Values carried = code.zeroSums();
  size_t count = carried.size();
  if (sums == Sums::Both)
    carried.append(code.zeroSums());
  carried.push_back(k.i32(0));
  carried = places.walkQueries(block, ownRows(), tiling.tile, carried,
                               [&](Tile tile, Tile next, ValueRange before) {
                                 return emitTile(tile, next, sums, before);
                               });
  endWalk();
  ValueRange all(carried);
  auto rowsOf = [&](unsigned argument) {
    return places.keyRows(tensor(argument), block.batch, block.keyHead);
  };
  if (sums != Sums::Values)
    storeSums(Values(all.take_front(count)), shape.scale,
              rowsOf(Argument::FirstResult), block.first, own.first);
  if (sums != Sums::Keys)
    storeSums(Values(all.drop_back().take_back(count)), 1.0f,
              rowsOf(Argument::FirstResult + 1), block.first, own.second);
}

void MatrixKeyCode::startQueries(Tile tile, Value stage) {
  startTile(querySources(block.batch, tile.head), tile.first, stage);
  auto [logsumexp, delta] = places.queryLines(block.batch, tile.head);
  code.startLineCopy(logsumexp, tile.first, tiling.tile, shape.sequence,
                     lineOf(stage, 0));
  code.startLineCopy(delta, tile.first, tiling.tile, shape.sequence,
                     lineOf(stage, 1));
}

Values MatrixKeyCode::loadLine(Memory line) {
  Values loaded;
  for (int64_t n = 0; n < tiling.tile / 8; ++n) {
    Value pair = k.loadVector(line, k.add(code.columnOfLane(), 8 * n), 2);
    loaded.push_back(k.extract(pair, 0));
    loaded.push_back(k.extract(pair, 1));
  }
  return loaded;
}

Values MatrixKeyCode::emitTile(Tile tile, Tile next, Sums sums,
                               ValueRange carried) {
  Value stage = carried.back(), other = k.sub(k.i32(1), stage);
  Value end = k.add(places.firstHead(block.keyHead), shape.group());
  advance(k.isLess(next.head, end), [&] { startQueries(next, other); });
  Values logsumexp = loadLine(lineOf(stage, 0));
  Values delta = loadLine(lineOf(stage, 1));
  for (Value &value : logsumexp)
    value = places.toBaseTwo(value);
  // Queries beyond the sequence are zeros, as are their lines: they add zeros.
  Tiles queries = stageOf(stage);
  auto [weights, slopes] =
      emitWeights(queries, block.first, tile.first, Queries::Columns,
                  sums != Sums::Values, [&](int64_t i) {
                    int64_t query = code.columnOf(i) / 8 * 2 + i % 2;
                    return std::pair(logsumexp[query], delta[query]);
                  });
  size_t count = code.zeroSums().size();
  Values after;
  auto add = [&](ArrayRef<Value> left, Memory right, ValueRange before) {
    Values added(before);
    code.accumulate(left, right, added);
    after.append(added);
  };
  if (sums != Sums::Values)
    add(slopes, queries.first, carried.take_front(count));
  if (sums != Sums::Keys)
    add(weights, queries.second, carried.drop_back().take_back(count));
  after.push_back(other);
  return after;
}

//===----------------------------------------------------------------------===//
// Queries
//===----------------------------------------------------------------------===//

class MatrixQueryCode : MatrixBackwardCode {
public:
  using MatrixBackwardCode::MatrixBackwardCode;

  void emit();
};

void MatrixQueryCode::emit() {
  places.readLastArguments(Argument::FirstResult + 1);
  auto [batch, head, first] = places.queryBlock(ownRows());
  startOwn(querySources(batch, head), first);
  auto queryLines = places.queryLines(batch, head);
  SmallVector<std::pair<Value, Value>> lines;
  for (int64_t row = 0; row < code.laneRows(); ++row)
    lines.push_back(
        places.loadLines(queryLines, k.add(first, code.rowInBlock(row))));

  Values sums = walkKeys(
      keySources(batch, k.div(head, shape.group())), first, code.zeroSums(),
      [&, first = first](Value key, Tiles tile, ValueRange before) {
        auto [weights, slopes] =
            emitWeights(tile, first, key, Queries::Rows, /*withSlopes=*/true,
                        [&](int64_t i) { return lines[code.rowOf(i)]; });
        Values after(before);
        code.accumulate(slopes, tile.first, after);
        return after;
      });
  Memory result = k.argument(Argument::FirstResult, shape.wideElement);
  storeSums(sums, shape.scale, places.queryRows(result, batch, head), first,
            own.first);
}

} // namespace

/// Beyond 128 two blocks of rows and two stages fill shared memory.
static MatrixTiling tilingOf(const AttentionShape &shape, int64_t resident) {
  if (shape.size <= 64)
    return {{/*warps=*/4, /*fragments=*/2}, /*tile=*/32, /*resident=*/2};
  if (shape.size <= 128)
    return {{/*warps=*/4, /*fragments=*/1}, /*tile=*/32, resident};
  return {{/*warps=*/8, /*fragments=*/1}, /*tile=*/16, /*resident=*/1};
}

FailureOr<std::string> emitMatrixKeyGrad(KernelLibrary &library, Location loc,
                                         const AttentionShape &shape) {
  return emitMatrixKernel<MatrixKeyCode>(
      library, loc, "attention_matrix_key_grad", shape, tilingOf(shape, 2),
      Argument::count(shape, 2), partsOf(shape) * shape.keyHeads);
}

FailureOr<std::string> emitMatrixQueryGrad(KernelLibrary &library, Location loc,
                                           const AttentionShape &shape) {
  return emitMatrixKernel<MatrixQueryCode>(
      library, loc, "attention_matrix_query_grad", shape, tilingOf(shape, 3),
      Argument::count(shape, 1), shape.heads);
}

} // namespace rota::lowering
