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

/// Arguments: operand, table, positions if there are any, result (which may be
/// the operand).
static void emitRope(RowBuilder &k, const RopeShape &shape, int64_t heads,
                     Value row) {
  int64_t half = shape.size / 2, groups = shape.heads / heads;
  Memory input = k.argument(0, shape.element);
  Memory table = k.argument(1, k.ops().getF32Type());
  Memory result = k.argument(operandsOf(shape), shape.element);
  Value token = groups == 1 ? row : k.div(row, groups);
  Value position = shape.hasPositions
                       ? k.loadIndex(k.argument(2, k.ops().getI32Type()), token)
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
      [&](RowBuilder &k, Value row) { emitRope(k, shape, heads, row); });
  return planCall(symbol, form.rows, 1, operandsOf(shape));
}

void addRopeEmitters(KernelEmitters &emitters) { emitters.add<planRope>(); }

} // namespace rota::lowering
