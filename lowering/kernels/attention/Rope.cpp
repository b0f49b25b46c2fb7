// SPDX-License-Identifier: Apache-2.0
//
// Rotary position embedding, on every device: a kernel row is some heads of one
// position of one sequence, so that its cosines and sines are read once for
// them.
#include "lowering/kernels/RowBuilder.h"
#include "lowering/kernels/TokenShapes.h"

#include <numeric>

using namespace mlir;

namespace rota::lowering {

/// Heads of a row: all on a CPU, a few on a GPU, where a thread has a vector of
/// each.
static int64_t headsOfRow(const RopeShape &shape,
                          const KernelLibrary &library) {
  if (library.getVectorBits() != 0)
    return shape.heads;
  constexpr int64_t most = 4;
  return std::gcd(shape.heads, most);
}

/// Operands of the op, after which stands the result.
static int64_t operandsOf(const RopeShape &shape) {
  return shape.hasPositions ? 3 : 2;
}

/// Numbers of arguments; the result may be the operand.
struct RopeArguments {
  unsigned input = 0, table = 1, positions = 2, result = 2;
};

static void emitRope(RowBuilder &k, const RopeShape &shape, int64_t heads,
                     Value row, RopeArguments numbers) {
  int64_t half = shape.size / 2, groups = shape.heads / heads;
  Memory input = k.argument(numbers.input, shape.element);
  Memory table = k.argument(numbers.table, k.ops().getF32Type());
  Memory result = k.argument(numbers.result, shape.element);
  Value token = groups == 1 ? row : k.div(row, groups);
  Value position =
      shape.hasPositions
          ? k.loadIndex(k.argument(numbers.positions, k.ops().getI32Type()),
                        token)
          : k.rem(token, shape.sequence);
  Value angles = k.mul(position, shape.size);
  Value start = k.mul(row, heads * shape.size);
  auto rotate = [&](Value pair, int64_t count) {
    auto [cosine, sine] =
        k.loadPairs(table, k.add(angles, k.mul(pair, 2)), count);
    if (shape.inverse)
      sine = k.subf(k.splat(0.0f), sine);
    Value minusSine = k.subf(k.splat(0.0f), sine);
    k.loop(0, heads, 1, [&, cosine = cosine, sine = sine](Value head) {
      Value at = k.add(k.add(start, k.mul(head, shape.size)), pair);
      Value pairAt = k.add(at, half);
      Value a = k.loadVector(input, at, count);
      Value b = k.loadVector(input, pairAt, count);
      k.storeVector(k.fma(b, minusSine, k.mulf(a, cosine)), result, at, count);
      k.storeVector(k.fma(a, sine, k.mulf(b, cosine)), result, pairAt, count);
    });
  };
  k.overColumns(half, [&](Value pair, ArrayRef<int64_t> counts) {
    for (int64_t count : counts) {
      rotate(pair, count);
      pair = k.add(pair, k.lanes());
    }
  });
}

static FailureOr<KernelPlan> planRope(mlir::rota::RopeOp op,
                                      KernelLibrary &library) {
  RopeShape shape(op);
  int64_t heads = headsOfRow(shape, library);
  RowForm form{shape.batch * shape.sequence * (shape.heads / heads),
               shape.size / 2, shape.element.getIntOrFloatBitWidth(),
               /*most=*/256, /*alone=*/true};
  FailureOr<std::string> symbol = emitRowCode(
      library, op->getLoc(), "rope", shape.key(), operandsOf(shape) + 1, form,
      [&](RowBuilder &k, Value row) {
        emitRope(k, shape, heads, row, {.result = unsigned(operandsOf(shape))});
      });
  return planCall(symbol, form.rows, 1, operandsOf(shape));
}

/// Queries and keys in one launch of a GPU: the rows of the first op, then
/// those of the second.
static FailureOr<KernelPlan> planRopes(mlir::rota::RopeOp first,
                                       mlir::rota::RopeOp second,
                                       KernelLibrary &library) {
  RopeShape a(first), b(second);
  auto isSame = [&](auto RopeShape::*field) { return a.*field == b.*field; };
  if (library.getVectorBits() != 0 || a.hasPositions || b.hasPositions ||
      second.getInput() == first.getResult() ||
      first.getTable() != second.getTable() || !isSame(&RopeShape::batch) ||
      !isSame(&RopeShape::sequence) || !isSame(&RopeShape::size) ||
      !isSame(&RopeShape::element) || !isSame(&RopeShape::inverse))
    return KernelPlan();
  int64_t heads = std::gcd(headsOfRow(a, library), headsOfRow(b, library));
  int64_t positions = a.batch * a.sequence;
  int64_t rows = positions * (a.heads / heads);
  RowForm form{rows + positions * (b.heads / heads), a.size / 2,
               a.element.getIntOrFloatBitWidth(), /*most=*/256,
               /*alone=*/true};
  FailureOr<std::string> symbol = emitRowCode(
      library, first->getLoc(), "ropes", a.key() + " and " + b.key(), 5, form,
      [&](RowBuilder &k, Value row) {
        k.branch(
            k.isLess(row, k.like(row, rows)),
            [&] { emitRope(k, a, heads, row, {.input = 0, .result = 3}); },
            [&] {
              emitRope(k, b, heads, k.add(row, -rows),
                       {.input = 2, .result = 4});
            });
      });
  if (failed(symbol))
    return failure();
  using Kind = KernelArgument::Kind;
  KernelPlan plan;
  plan.calls.push_back({*symbol,
                        form.rows,
                        1,
                        {{Kind::Operand, 0},
                         {Kind::Operand, 1},
                         {Kind::Operand, 2},
                         {Kind::Result, 0},
                         {Kind::Result, 1}}});
  return plan;
}

void addRopeEmitters(KernelEmitters &emitters) {
  emitters.add<planRope>();
  emitters.addPair<planRopes>();
}

} // namespace rota::lowering
