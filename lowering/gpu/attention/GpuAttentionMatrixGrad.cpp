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
        own{allocateOwn(), allocateOwn()} {}

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

  using Part = GpuMatrixCode;
  /// The products of own rows and a tile, of one part.
  struct Products {
    Part::Started weights, slopes; // slopes where asked for
  };
  SmallVector<Products> startProducts(Tiles tile, bool withSlopes);
  /// -log2(e) * logsumexp, and delta, of product element i.
  using Line = llvm::function_ref<std::pair<Value, Value>(int64_t i)>;
  /// Weights of the own rows and a tile, whose positions begin at `first` and
  /// `other`; under a soft cap also by what it multiplies the slopes.
  struct Weights {
    Values weights, steepness;
  };
  Weights emitWeights(Part &part, Products &products, Value first, Value other,
                      Queries queries, Line line);
  /// The cotangents of scaled scores.
  Values emitSlopes(Part &part, Products &products, const Weights &weights,
                    Line line);
  /// Writes sums * factor, those of each part in turn, by way of the warp's
  /// rows in `tile`, which no other warp uses.
  void storeSums(ValueRange sums, float factor, StridedRows rows, Value first,
                 MatrixTile tile);
  /// The sums of all parts.
  Values zeroSums();

  Tiles own;
};

SmallVector<MatrixBackwardCode::Products>
MatrixBackwardCode::startProducts(Tiles tile, bool withSlopes) {
  SmallVector<Products> all(parts.size());
  for (auto [part, products] : llvm::zip(parts, all)) {
    products.weights = part.startDot(own.first, tile.first);
    if (withSlopes)
      products.slopes = part.startDot(own.second, tile.second);
  }
  return all;
}

MatrixBackwardCode::Weights
MatrixBackwardCode::emitWeights(Part &part, Products &products, Value first,
                                Value other, Queries queries, Line line) {
  Weights all{part.finish(products.weights), {}};
  bend(all.weights);
  // Before the mask, which makes scores infinite.
  if (shape.softCap != 0.0f)
    for (Value bent : all.weights)
      all.steepness.push_back(k.subf(k.f32(1.0f), k.mulf(bent, bent)));
  maskPartial(part, all.weights, first, other, queries);
  for (auto [i, weight] : llvm::enumerate(all.weights))
    weight = fastExp2(k, k.fma(weight, scale, line(i).first));
  return all;
}

Values MatrixBackwardCode::emitSlopes(Part &part, Products &products,
                                      const Weights &weights, Line line) {
  Values slopes = part.finish(products.slopes);
  for (auto [i, slope] : llvm::enumerate(slopes)) {
    slope = k.subf(slope, line(i).second);
    if (!weights.steepness.empty())
      slope = k.mulf(slope, weights.steepness[i]);
    slope = k.mulf(weights.weights[i], slope);
  }
  return slopes;
}

void MatrixBackwardCode::storeSums(ValueRange sums, float factor,
                                   StridedRows rows, Value first,
                                   MatrixTile tile) {
  for (auto [i, part] : llvm::enumerate(parts)) {
    Values own(ofPart(sums, i));
    if (factor != 1.0f)
      for (Value &sum : own)
        sum = k.mulf(sum, k.f32(factor));
    part.storeRows(own, rows, first, shape.sequence, tile);
  }
}

Values MatrixBackwardCode::zeroSums() {
  Values all;
  for (Part &part : parts)
    all.append(part.zeroSums());
  return all;
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
  Values carried = zeroSums();
  size_t count = carried.size();
  if (sums == Sums::Both)
    carried.append(zeroSums());
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
    storeSums(all.take_front(count), shape.scale, rowsOf(Argument::FirstResult),
              block.first, own.first);
  if (sums != Sums::Keys)
    storeSums(all.drop_back().take_back(count), 1.0f,
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
  Values logsumexp = loadLine(lineOf(stage, 0)), delta;
  for (Value &value : logsumexp)
    value = places.toBaseTwo(value);
  // Queries beyond the sequence are zeros, as are their lines: they add zeros.
  Tiles queries = stageOf(stage);
  size_t count = zeroSums().size();
  ValueRange ofKeys = carried.take_front(count);
  ValueRange ofValues = carried.drop_back().take_back(count);
  SmallVector<Part::Started> keySums, valueSums;
  auto products = startProducts(queries, sums != Sums::Values);
  for (auto [i, part] : llvm::enumerate(parts)) {
    auto line = [&](int64_t j) {
      int64_t query = part.columnOf(j) / 8 * 2 + j % 2;
      return std::pair(logsumexp[query],
                       delta.empty() ? Value() : delta[query]);
    };
    Weights weights = emitWeights(part, products[i], block.first, tile.first,
                                  Queries::Columns, line);
    // Until here registers hold one of the two lines.
    if (delta.empty())
      delta = loadLine(lineOf(stage, 1));
    if (sums != Sums::Keys)
      valueSums.push_back(part.startAccumulate(weights.weights, queries.second,
                                               Values(ofPart(ofValues, i))));
    if (sums != Sums::Values)
      keySums.push_back(
          part.startAccumulate(emitSlopes(part, products[i], weights, line),
                               queries.first, Values(ofPart(ofKeys, i))));
  }
  keySums.append(valueSums);
  Values after = code.finishAll(keySums);
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
  SmallVector<SmallVector<std::pair<Value, Value>>> lines(parts.size());
  for (auto [part, own] : llvm::zip(parts, lines))
    for (int64_t row = 0; row < part.laneRows(); ++row)
      own.push_back(
          places.loadLines(queryLines, k.add(first, part.rowInBlock(row))));

  Values sums = walkKeys(
      keySources(batch, k.div(head, shape.group())), first, zeroSums(),
      [&, first = first](Value key, Tiles tile, ValueRange before) {
        auto products = startProducts(tile, /*withSlopes=*/true);
        SmallVector<Part::Started> started;
        for (auto [i, part] : llvm::enumerate(parts)) {
          auto line = [&](int64_t j) { return lines[i][part.rowOf(j)]; };
          Weights weights =
              emitWeights(part, products[i], first, key, Queries::Rows, line);
          started.push_back(
              part.startAccumulate(emitSlopes(part, products[i], weights, line),
                                   tile.first, Values(ofPart(before, i))));
        }
        return code.finishAll(started);
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
  MatrixTiling tiling = tilingOf(shape, 2), grouped = tiling;
  // Sums of two fragments of keys leave no registers for more.
  if (tiling.block.fragments == 1 && shape.size <= 128)
    grouped.tile = kGroupTile;
  return emitMatrixKernel<MatrixKeyCode>(
      library, loc, "attention_matrix_key_grad", shape, tiling, grouped,
      Argument::count(shape, 2), partsOf(shape) * shape.keyHeads);
}

FailureOr<std::string> emitMatrixQueryGrad(KernelLibrary &library, Location loc,
                                           const AttentionShape &shape) {
  MatrixTiling tiling = tilingOf(shape, 3), grouped = tiling;
  if (shape.size <= 128) {
    grouped.tile = kGroupTile;
    grouped.resident = 2;
  }
  return emitMatrixKernel<MatrixQueryCode>(
      library, loc, "attention_matrix_query_grad", shape, tiling, grouped,
      Argument::count(shape, 1), shape.heads);
}

} // namespace rota::lowering
