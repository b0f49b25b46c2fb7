// SPDX-License-Identifier: Apache-2.0
//
// Rotary position embedding: a kernel row is one position of one sequence with
// all its heads, so that its cosines and sines are read once.
#include "lowering/kernels/KernelBuilder.h"
#include "lowering/kernels/TokenShapes.h"

using namespace mlir;

namespace rota::lowering {
namespace {

/// The cosines and sines that stand in turn at `index` of the table, `count` of
/// each.
std::pair<Value, Value> loadAngles(KernelBuilder &k, Memory table, Value index,
                                   int64_t count) {
  int64_t lanes = k.lanes(), second = 2 * count - lanes;
  Value low = k.loadVector(table, index, std::min(2 * count, lanes));
  Value high = second > 0 ? k.loadVector(table, k.add(index, lanes), second)
                          : k.splat(0.0f);
  SmallVector<int64_t> even, odd;
  for (int64_t lane = 0; lane < lanes; ++lane) {
    even.push_back(2 * lane);
    odd.push_back(2 * lane + 1);
  }
  return {k.shuffle(low, high, even), k.shuffle(low, high, odd)};
}

/// Arguments: operand, table, result (which may be the operand).
void emitRope(KernelBuilder &k, const RopeShape &shape) {
  int64_t half = shape.size / 2, lanes = k.lanes();
  Memory input = k.argument(0, shape.element);
  Memory table = k.argument(1, k.ops().getF32Type());
  Memory result = k.argument(2, shape.element);
  k.loop(k.begin(), k.end(), 1, [&](Value row) {
    Value angles = k.mul(k.rem(row, shape.sequence), shape.size);
    Value start = k.mul(row, shape.heads * shape.size);
    auto rotate = [&](Value pair, int64_t count) {
      auto [cosine, sine] =
          loadAngles(k, table, k.add(angles, k.mul(pair, 2)), count);
      if (shape.inverse)
        sine = k.subf(k.splat(0.0f), sine);
      Value minusSine = k.subf(k.splat(0.0f), sine);
      k.loop(0, shape.heads, 1, [&](Value head) {
        Value at = k.add(k.add(start, k.mul(head, shape.size)), pair);
        Value pairAt = k.add(at, half);
        Value a = k.loadVector(input, at, count);
        Value b = k.loadVector(input, pairAt, count);
        k.storeVector(k.fma(b, minusSine, k.mulf(a, cosine)), result, at,
                      count);
        k.storeVector(k.fma(a, sine, k.mulf(b, cosine)), result, pairAt, count);
      });
    };
    int64_t whole = half / lanes * lanes;
    if (whole > 0)
      k.loop(0, whole, lanes, [&](Value pair) { rotate(pair, lanes); });
    if (whole < half)
      rotate(k.i64(whole), half - whole);
  });
}

} // namespace

static FailureOr<KernelPlan> planRope(mlir::rota::RopeOp op,
                                      KernelLibrary &library) {
  RopeShape shape(op);
  FailureOr<std::string> symbol =
      emitDedicated(library, "rope", shape.key(), 3,
                    [&](KernelBuilder &k) { emitRope(k, shape); });
  return planCall(symbol, shape.batch * shape.sequence, 1, /*operands=*/2);
}

void addRopeEmitters(KernelEmitters &emitters) { emitters.add<planRope>(); }

} // namespace rota::lowering
