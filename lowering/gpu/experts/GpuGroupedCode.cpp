// SPDX-License-Identifier: Apache-2.0
#include "lowering/gpu/experts/GpuGroupedCode.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include <limits>

using namespace mlir;

namespace rota::lowering {

std::string GroupedProduct::key() const {
  std::string key;
  llvm::raw_string_ostream(key)
      << shape.key() << " by " << out << (transposed ? " transposed" : "")
      << " to " << stored << (accumulate ? " added" : "");
  return key;
}

GroupedCode::GroupedCode(GpuBuilder &k, const GroupedProduct &product,
                         MatrixUnit unit)
    : k(k), product(product), shape(product.shape),
      groups(shape, k.argument(0, k.ops().getI32Type()).base),
      tile(product.tile(unit)),
      tiles(GpuTileProduct::make(k, shape.element, product.widths(),
                                 product.out, unit)) {}

//===----------------------------------------------------------------------===//
// Rows by matrices
//===----------------------------------------------------------------------===//

Value GroupedCode::expertOf(const ExpertTiles &experts, Value tile) {
  Memory ends = k.offset(experts.starts(k), k.i64(1));
  Value count = k.loop(
      k.widen(k.thread()), k.i64(shape.experts), kThreads, {k.f32(0.0f)},
      [&](Value i, ValueRange sum) -> Values {
        Value isBefore = k.isLess(k.loadIndex(ends, i), k.add(tile, 1));
        return {k.addf(sum[0], k.select(isBefore, k.f32(1.0f), k.f32(0.0f)))};
      })[0];
  count = k.combineThreads(count, kThreads,
                           [&](ValueRange x, ValueRange y) -> Values {
                             return {k.addf(x[0], y[0])};
                           })[0];
  return arith::FPToSIOp::create(k.ops(), k.ops().getI64Type(), count);
}

void GroupedCode::findRows(TileRows rows, Memory befores, Value expert,
                           Value from, Value count) {
  auto rowsBefore = [&](Value sequence) { return k.load(befores, sequence); };
  Value last = k.add(rowsBefore(k.i32(shape.batch)), -1);
  Value first = k.narrow(from);
  k.loop(k.thread(), count, kThreads, [&](Value i) {
    Value row = k.min(k.add(first, i), last);
    // The last sequence with no more rows before it.
    Value sequence = k.i32(0);
    for (int64_t step = llvm::PowerOf2Ceil(shape.batch) / 2; step > 0;
         step /= 2) {
      Value next = k.min(k.add(sequence, step), k.i32(shape.batch));
      sequence = k.select(k.isLess(row, rowsBefore(next)), sequence, next);
    }
    Value start = k.load(groups.firsts(k, k.widen(sequence)), expert);
    Value inSequence = k.sub(row, rowsBefore(sequence));
    k.store(k.add(k.mul(sequence, shape.rows), k.add(start, inSequence)), rows,
            i);
  });
}

Value GroupedCode::partOf(int64_t size, Value from, int64_t most) {
  return size % most == 0 ? Value() : k.sub(k.i64(size), from);
}

std::pair<Value, Value> GroupedCode::findColumn() {
  Value number = k.widen(k.block());
  int64_t count = llvm::divideCeil(product.out, tile.columns);
  return {k.div(number, count), k.mul(k.rem(number, count), tile.columns)};
}

/// A value like `sum` that makes the loss no finite number: it shows that a
/// block got more rows than it has, since a kernel cannot fail.
static Value noNumber(GpuBuilder &k, Value sum) {
  constexpr float none = std::numeric_limits<float>::quiet_NaN();
  auto type = dyn_cast<VectorType>(sum.getType());
  return type ? k.splat(none, type.getDimSize(0)) : k.f32(none);
}

void GroupedCode::emitProduct() {
  ExpertTiles experts(shape, k.argument(1, k.ops().getI32Type()).base);
  auto [number, column] = findColumn();
  // Blocks that run at one time have rows of few experts, in all sequences: so
  // their matrices are in a cache.
  Value expert = expertOf(experts, number);
  k.when(k.isLess(expert, k.i64(shape.experts)),
         [&, number = number, column = column] {
           emitTile(experts, number, expert, column);
         });
  if (!product.accumulate)
    k.when(k.isLess(number, k.i64(product.rowTiles())),
           [&, number = number, column = column] {
             clearUnfilled(number, column);
           });
}

void GroupedCode::emitTile(const ExpertTiles &experts, Value number,
                           Value expert, Value column) {
  int64_t in = shape.width, out = product.out;
  Memory befores = experts.befores(k, expert);
  Value first = k.sub(number, k.loadIndex(experts.starts(k), expert));
  Value from = k.mul(first, tile.rows);
  Value left = k.sub(k.loadIndex(befores, k.i64(shape.batch)), from);
  Value count = k.min(left, k.i64(tile.rows));
  Value columns = partOf(out, column, tile.columns);
  TileRows rows = k.allocateShared(tile.rows, k.ops().getI32Type());
  findRows(rows, befores, expert, from, k.i32(tile.rows));
  TileSide a{k.argument(2, shape.element), /*depthLast=*/true, in, count, rows};
  Value start = k.mul(expert, in * out);
  start = k.add(start, k.mul(column, product.transposed ? in : 1));
  TileSide b{k.offset(k.argument(3, shape.element), start), product.transposed,
             product.transposed ? in : out, columns};
  Values sums = tiles->multiply(a, b, k.i64(in), tiles->zeros());
  Value isOver =
      k.isLess(k.i64(0), k.loadIndex(experts.overfull(k, expert), k.i64(0)));
  for (Value &sum : sums)
    sum = k.select(isOver, noNumber(k, sum), sum);
  tiles->store(sums,
               {k.offset(k.argument(4, product.stored), column), out, k.i64(0),
                count, columns, rows},
               product.accumulate);
}

void GroupedCode::clearUnfilled(Value number, Value column) {
  Value sequence = k.rem(number, shape.batch),
        group = k.div(number, shape.batch);
  Value inBlock = k.mul(k.rem(group, product.rowTilesOfBlock()), tile.rows);
  Value block = k.div(group, product.rowTilesOfBlock());
  Value low = k.add(k.mul(block, shape.rowsOfBlock()), inBlock);
  Value rows =
      k.min(k.sub(k.i64(shape.rowsOfBlock()), inBlock), k.i64(tile.rows));
  Value last = k.add(k.mul(k.add(block, 1), shape.expertsOfBlock()), -1);
  Value filled = k.loadIndex(groups.ends(k, sequence), last);
  Value row = k.add(k.mul(sequence, shape.rows), low);
  Memory to = k.offset(k.argument(4, product.stored),
                       k.add(k.mul(row, product.out), column));
  Value first = k.sub(filled, low);
  k.when(k.isLess(first, rows), [&] {
    tiles->store(tiles->zeros(),
                 {to, product.out, first, rows,
                  partOf(product.out, column, tile.columns)},
                 /*accumulate=*/false);
  });
}

//===----------------------------------------------------------------------===//
// Gradients of matrices
//===----------------------------------------------------------------------===//

/// Rows of an expert whose numbers a block keeps.
static constexpr int64_t kListedRows = 2048;

void GroupedCode::emitGradient() {
  ExpertTiles experts(shape, k.argument(1, k.ops().getI32Type()).base);
  auto [number, column] = findColumn();
  Value row = k.mul(k.rem(number, product.matrixTiles()), tile.rows);
  Value expert = k.div(number, product.matrixTiles());
  k.when(k.isLess(expert, k.i64(shape.experts)), [&, column = column] {
    emitMatrixTile(experts, expert, row, column);
  });
}

void GroupedCode::emitMatrixTile(const ExpertTiles &experts, Value expert,
                                 Value row, Value column) {
  int64_t in = shape.width, out = product.out;
  Value rows = partOf(in, row, tile.rows),
        columns = partOf(out, column, tile.columns);
  constexpr int64_t slice = GpuTileProduct::kMostDepth;
  int64_t listed = std::min<int64_t>(
      kListedRows, llvm::alignTo(shape.batch * shape.rows, slice));
  TileRows list = k.allocateShared(listed, k.ops().getI32Type());
  TileSide left{k.offset(k.argument(2, shape.element), row),
                /*depthLast=*/false, in, rows, list};
  TileSide right{k.offset(k.argument(3, shape.element), column),
                 /*depthLast=*/false, out, columns, list};
  Memory befores = experts.befores(k, expert);
  Value all = k.loadIndex(befores, k.i64(shape.batch));
  Values sums = k.loop(k.i64(0), all, listed, tiles->zeros(),
                       [&](Value from, ValueRange before) {
                         Value depths = k.min(k.sub(all, from), k.i64(listed));
                         Value whole = k.mul(
                             k.div(k.add(depths, slice - 1), slice), slice);
                         findRows(list, befores, expert, from, k.narrow(whole));
                         return tiles->multiply(left, right, depths, before);
                       });
  Value start = k.mul(expert, in * out);
  start = k.add(start, k.add(k.mul(row, out), column));
  tiles->store(sums,
               {k.offset(k.argument(4, product.stored), start), out, k.i64(0),
                rows ? rows : k.i64(tile.rows), columns},
               product.accumulate);
}

} // namespace rota::lowering
