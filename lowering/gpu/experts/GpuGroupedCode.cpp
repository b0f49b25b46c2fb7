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

std::pair<Value, Value> GroupedCode::expertsWith(Memory firsts, Memory ends,
                                                 Value low, Value high) {
  // Both count a front part of the experts, whose rows ascend.
  Value one = k.f32(1.0f), zero = k.f32(0.0f);
  Values counts =
      k.loop(k.widen(k.thread()), k.i64(shape.expertsOfBlock()), kThreads,
             {zero, zero}, [&](Value i, ValueRange sums) -> Values {
               Value isBefore = k.isLess(loadIndex(k, ends, i), k.add(low, 1));
               Value begins = k.isLess(loadIndex(k, firsts, i), high);
               return {k.addf(sums[0], k.select(isBefore, one, zero)),
                       k.addf(sums[1], k.select(begins, one, zero))};
             });
  counts = k.combineThreads(counts, kThreads,
                            [&](ValueRange x, ValueRange y) -> Values {
                              return {k.addf(x[0], y[0]), k.addf(x[1], y[1])};
                            });
  auto expert = [&](Value count) {
    return arith::FPToSIOp::create(k.ops(), k.ops().getI64Type(), count);
  };
  return {expert(counts[0]), expert(counts[1])};
}

/// A value like `sum` that makes the loss no finite number: it shows that a
/// block got more rows than it has, since a kernel cannot fail.
static Value noNumber(GpuBuilder &k, Value sum) {
  constexpr float none = std::numeric_limits<float>::quiet_NaN();
  auto type = dyn_cast<VectorType>(sum.getType());
  return type ? k.splat(none, type.getDimSize(0)) : k.f32(none);
}

void GroupedCode::emitProduct() {
  int64_t in = shape.width, out = product.out, experts = shape.expertsOfBlock();
  Value number = k.widen(k.block());
  Value column = k.mul(k.rem(number, product.columnTiles()), tileRows);
  Value tile = k.div(number, product.columnTiles());
  // Blocks that run at one time have rows of few experts, in all sequences: so
  // their matrices are in a cache.
  Value sequence = k.rem(tile, shape.batch), group = k.div(tile, shape.batch);
  Value inBlock = k.mul(k.rem(group, product.rowTilesOfBlock()), tileRows);
  Value block = k.div(group, product.rowTilesOfBlock());
  Value low = k.add(k.mul(block, shape.rowsOfBlock()), inBlock);
  Value rows =
      k.min(k.sub(k.i64(shape.rowsOfBlock()), inBlock), k.i64(tileRows));
  Value high = k.add(low, rows), columns = k.sub(k.i64(out), column);

  Value firstExpert = k.mul(block, experts);
  Memory firsts = k.offset(groups.firsts(k, sequence), firstExpert);
  Memory ends = k.offset(groups.ends(k, sequence), firstExpert);
  Value isOver =
      k.isLess(k.i64(0), loadIndex(k, groups.overfull(k, sequence), block));
  Value row = k.add(k.mul(sequence, shape.rows), low);
  Memory to =
      k.offset(k.argument(3, product.stored), k.add(k.mul(row, out), column));
  Memory left = k.offset(k.argument(1, shape.element), k.mul(row, in));
  Memory matrices = k.argument(2, shape.element);
  auto ofExpert = [&](Value expert) {
    Value start = k.mul(k.add(firstExpert, expert), in * out);
    start = k.add(start, k.mul(column, product.transposed ? in : 1));
    return TileSide{k.offset(matrices, start), product.transposed,
                    product.transposed ? in : out, columns};
  };

  auto [begin, end] = expertsWith(firsts, ends, low, high);
  k.loop(begin, end, 1, [&](Value expert) {
    Value from = k.max(loadIndex(k, firsts, expert), low);
    Value until = k.min(loadIndex(k, ends, expert), high);
    k.when(k.isLess(from, until), [&] {
      from = k.sub(from, low);
      until = k.sub(until, low);
      TileSide a{left, /*depthLast=*/true, in, until, from};
      TileSide b = ofExpert(expert);
      Values sums = tiles->multiply(
          1, [&](Value) { return std::pair(k.i64(0), k.i64(in)); },
          [&](Value) { return std::pair(a, b); }, tiles->zeros());
      for (Value &sum : sums)
        sum = k.select(isOver, noNumber(k, sum), sum);
      tiles->store(sums, {to, out, from, until, columns}, product.accumulate);
    });
  });
  if (product.accumulate)
    return;
  Value filled = loadIndex(k, ends, k.i64(experts - 1));
  tiles->store(tiles->zeros(), {to, out, k.sub(filled, low), rows, columns},
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
  Memory lhs = k.argument(1, shape.element), rhs = k.argument(2, shape.element);
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
               {k.offset(k.argument(3, product.stored), start), out, k.i64(0),
                rows, columns},
               product.accumulate);
}

} // namespace rota::lowering
