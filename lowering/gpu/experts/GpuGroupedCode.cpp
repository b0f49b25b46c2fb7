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

GroupedCode::GroupedCode(GpuBuilder &k, const GroupedProduct &product)
    : k(k), product(product), shape(product.shape),
      groups(shape, k.argument(0, k.ops().getI32Type()).base),
      tileRows(product.tile()),
      tiles(GpuTileProduct::make(k, shape.element, product.widths())) {}

static Value loadIndex(GpuBuilder &k, Memory memory, Value at) {
  return arith::ExtSIOp::create(k.ops(), k.ops().getI64Type(),
                                k.load(memory, at));
}

//===----------------------------------------------------------------------===//
// Rows by matrices
//===----------------------------------------------------------------------===//

Value GroupedCode::expertOf(const ExpertTiles &experts, Value tile) {
  Memory ends = k.offset(experts.starts(k), k.i64(1));
  Value count = k.loop(
      k.widen(k.thread()), k.i64(shape.experts), kThreads, {k.f32(0.0f)},
      [&](Value i, ValueRange sum) -> Values {
        Value isBefore = k.isLess(loadIndex(k, ends, i), k.add(tile, 1));
        return {k.addf(sum[0], k.select(isBefore, k.f32(1.0f), k.f32(0.0f)))};
      })[0];
  count = k.combineThreads(count, kThreads,
                           [&](ValueRange x, ValueRange y) -> Values {
                             return {k.addf(x[0], y[0])};
                           })[0];
  return arith::FPToSIOp::create(k.ops(), k.ops().getI64Type(), count);
}

TileRows GroupedCode::findRows(Memory befores, Value expert, Value from) {
  TileRows rows = k.allocateShared(tileRows, k.ops().getI32Type());
  Value thread = k.thread();
  Value last = k.add(loadIndex(k, befores, k.i64(shape.batch)), -1);
  Value row = k.min(k.add(from, k.widen(thread)), last);
  k.when(k.isWithin(thread, tileRows), [&] {
    Value sequence =
        k.loop(k.i64(1), k.i64(shape.batch), 1, {k.i64(0)},
               [&](Value next, ValueRange count) -> Values {
                 Value isAtOrBefore =
                     k.isLess(loadIndex(k, befores, next), k.add(row, 1));
                 return {k.select(isAtOrBefore, k.add(count[0], 1), count[0])};
               })[0];
    Value first = loadIndex(k, groups.firsts(k, sequence), expert);
    Value inSequence = k.sub(row, loadIndex(k, befores, sequence));
    Value number = k.add(k.mul(sequence, shape.rows), k.add(first, inSequence));
    k.store(arith::TruncIOp::create(k.ops(), k.ops().getI32Type(), number),
            rows, thread);
  });
  return rows;
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
  Value number = k.widen(k.block());
  Value column = k.mul(k.rem(number, product.columnTiles()), tileRows);
  Value tile = k.div(number, product.columnTiles());
  // Blocks that run at one time have rows of few experts, in all sequences: so
  // their matrices are in a cache.
  Value expert = expertOf(experts, tile);
  k.when(k.isLess(expert, k.i64(shape.experts)),
         [&] { emitTile(experts, tile, expert, column); });
  if (!product.accumulate)
    k.when(k.isLess(tile, k.i64(product.rowTiles())),
           [&] { clearUnfilled(tile, column); });
}

void GroupedCode::emitTile(const ExpertTiles &experts, Value tile, Value expert,
                           Value column) {
  int64_t in = shape.width, out = product.out;
  Memory befores = experts.befores(k, expert);
  Value first = k.sub(tile, loadIndex(k, experts.starts(k), expert));
  Value from = k.mul(first, tileRows);
  Value left = k.sub(loadIndex(k, befores, k.i64(shape.batch)), from);
  Value count = k.min(left, k.i64(tileRows));
  Value columns = k.sub(k.i64(out), column);
  TileRows rows = findRows(befores, expert, from);
  TileSide a{k.argument(2, shape.element), /*depthLast=*/true, in, count, rows};
  Value start = k.mul(expert, in * out);
  start = k.add(start, k.mul(column, product.transposed ? in : 1));
  TileSide b{k.offset(k.argument(3, shape.element), start), product.transposed,
             product.transposed ? in : out, columns};
  Values sums = tiles->multiply(
      1, [&](Value) { return std::pair(k.i64(0), k.i64(in)); },
      [&](Value) { return std::pair(a, b); }, tiles->zeros());
  Value isOver =
      k.isLess(k.i64(0), loadIndex(k, experts.overfull(k, expert), k.i64(0)));
  for (Value &sum : sums)
    sum = k.select(isOver, noNumber(k, sum), sum);
  tiles->store(sums,
               {k.offset(k.argument(4, product.stored), column), out, k.i64(0),
                count, columns, rows},
               product.accumulate);
}

void GroupedCode::clearUnfilled(Value tile, Value column) {
  Value sequence = k.rem(tile, shape.batch), group = k.div(tile, shape.batch);
  Value inBlock = k.mul(k.rem(group, product.rowTilesOfBlock()), tileRows);
  Value block = k.div(group, product.rowTilesOfBlock());
  Value low = k.add(k.mul(block, shape.rowsOfBlock()), inBlock);
  Value rows =
      k.min(k.sub(k.i64(shape.rowsOfBlock()), inBlock), k.i64(tileRows));
  Value last = k.add(k.mul(k.add(block, 1), shape.expertsOfBlock()), -1);
  Value filled = loadIndex(k, groups.ends(k, sequence), last);
  Value row = k.add(k.mul(sequence, shape.rows), low);
  Memory to = k.offset(k.argument(4, product.stored),
                       k.add(k.mul(row, product.out), column));
  tiles->store(tiles->zeros(),
               {to, product.out, k.sub(filled, low), rows,
                k.sub(k.i64(product.out), column)},
               /*accumulate=*/false);
}

//===----------------------------------------------------------------------===//
// Gradients of matrices
//===----------------------------------------------------------------------===//

void GroupedCode::emitGradient() {
  int64_t in = shape.width, out = product.out;
  Value number = k.widen(k.block());
  Value column = k.mul(k.rem(number, product.columnTiles()), tileRows);
  Value rest = k.div(number, product.columnTiles());
  Value row = k.mul(k.rem(rest, product.matrixTiles()), tileRows);
  Value expert = k.div(rest, product.matrixTiles());
  Value rows = k.sub(k.i64(in), row), columns = k.sub(k.i64(out), column);
  Memory lhs = k.argument(2, shape.element), rhs = k.argument(3, shape.element);
  auto depthsOf = [&](Value sequence) {
    return std::pair(loadIndex(k, groups.firsts(k, sequence), expert),
                     loadIndex(k, groups.ends(k, sequence), expert));
  };
  auto sidesOf = [&](Value sequence) {
    Value start = k.mul(sequence, shape.rows);
    return std::pair(TileSide{k.offset(lhs, k.add(k.mul(start, in), row)),
                              /*depthLast=*/false, in, rows},
                     TileSide{k.offset(rhs, k.add(k.mul(start, out), column)),
                              /*depthLast=*/false, out, columns});
  };
  Values sums = tiles->multiply(shape.batch, depthsOf, sidesOf, tiles->zeros());
  Value start = k.mul(expert, in * out);
  start = k.add(start, k.add(k.mul(row, out), column));
  tiles->store(sums,
               {k.offset(k.argument(4, product.stored), start), out, k.i64(0),
                rows, columns},
               product.accumulate);
}

} // namespace rota::lowering
