// SPDX-License-Identifier: Apache-2.0
//
// Rotary position embedding on a GPU: a thread rotates one chunk of pairs of a
// few heads of one position, so that cosines and sines are read once for them.
#include "lowering/gpu/GpuBuilder.h"
#include "lowering/kernels/TokenShapes.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace rota::lowering {
namespace {

/// Heads of a thread at most.
constexpr int64_t kMostHeads = 4;

int64_t headsOfThread(const RopeShape &shape) {
  int64_t heads = kMostHeads;
  while (shape.heads % heads != 0)
    heads /= 2;
  return heads;
}

/// The cosines and sines that stand in turn at `index` of the table, `count` of
/// each.
std::pair<Value, Value> loadAngles(GpuBuilder &k, Memory table, Value index,
                                   int64_t count) {
  Value low = k.loadVector(table, index, count);
  Value high = k.loadVector(table, k.add(index, count), count);
  auto every = [&](int64_t first) -> Value {
    SmallVector<int64_t> elements;
    for (int64_t i = 0; i < count; ++i)
      elements.push_back(2 * i + first);
    return vector::ShuffleOp::create(k.ops(), low, high, elements);
  };
  return {every(0), every(1)};
}

/// Arguments: operand, table, result (which may be the operand). `number` has a
/// chunk of pairs, heads and a position.
void emitRope(GpuBuilder &k, const RopeShape &shape, Value number) {
  int64_t half = shape.size / 2, width = chunkWidth(half, shape.element);
  int64_t chunks = half / width, heads = headsOfThread(shape);
  int64_t groups = shape.heads / heads;
  Memory table = k.argument(1, k.ops().getF32Type());
  Memory input = k.argument(0, shape.element);
  Memory result = k.argument(2, shape.element);
  Value pair = k.mul(k.rem(number, chunks), width);
  Value rest = k.div(number, chunks);
  Value group = k.rem(rest, groups), position = k.div(rest, groups);

  Value angles = k.mul(k.rem(position, shape.sequence), shape.size);
  auto [cosine, sine] =
      loadAngles(k, table, k.add(angles, k.mul(pair, 2)), width);
  Value minusSine = k.subf(k.splat(0.0f, width), sine);
  if (shape.inverse)
    std::swap(sine, minusSine);
  Value start = k.mul(k.widen(position), shape.heads * shape.size);
  start = k.add(start, k.mul(k.widen(group), heads * shape.size));
  start = k.add(start, k.widen(pair));
  for (int64_t head = 0; head < heads; ++head) {
    Value at = k.add(start, head * shape.size), pairAt = k.add(at, half);
    Value a = k.loadVector(input, at, width);
    Value b = k.loadVector(input, pairAt, width);
    k.store(k.fma(b, minusSine, k.mulf(a, cosine)), result, at);
    k.store(k.fma(a, sine, k.mulf(b, cosine)), result, pairAt);
  }
}

} // namespace

static FailureOr<KernelPlan> planRope(mlir::rota::RopeOp op,
                                      KernelLibrary &library) {
  RopeShape shape(op);
  int64_t positions = shape.batch * shape.sequence;
  int64_t pairs = shape.size / 2;
  int64_t count = positions * (shape.heads / headsOfThread(shape)) *
                  (pairs / chunkWidth(pairs, shape.element));
  std::string key = std::to_string(shape.batch) + "x" + shape.key();
  FailureOr<std::string> symbol = emitEach(
      library, op->getLoc(), "rope", key, 3, count,
      [&](GpuBuilder &k, Value number) { emitRope(k, shape, number); });
  return planCall(symbol, positions, 1, /*operands=*/2);
}

void addGpuRopeEmitters(KernelEmitters &emitters) { emitters.add<planRope>(); }

} // namespace rota::lowering
