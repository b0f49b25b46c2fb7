// SPDX-License-Identifier: Apache-2.0
//
// The addition of a value to a gradient, for values whose own op cannot: a
// thread adds one chunk.
#include "lowering/gpu/GpuBuilder.h"

using namespace mlir;

namespace rota::lowering {

/// Arguments: value, gradient; both f32.
static void emitAdd(GpuBuilder &k, Value chunk, int64_t width) {
  Type f32 = k.ops().getF32Type();
  Memory value = k.argument(0, f32), gradient = k.argument(1, f32);
  Value at = k.mul(k.widen(chunk), width);
  k.store(
      k.addf(k.loadVector(gradient, at, width), k.loadVector(value, at, width)),
      gradient, at);
}

static FailureOr<KernelPlan> planAccumulate(mlir::rota::AccumulateOp op,
                                            KernelLibrary &library) {
  int64_t elements =
      cast<RankedTensorType>(op.getValue().getType()).getNumElements();
  int64_t width = chunkWidth(elements, 32);
  auto symbol =
      emitEach(library, op.getLoc(), "add", std::to_string(elements),
               /*arguments=*/2, elements / width,
               [&](GpuBuilder &k, Value chunk) { emitAdd(k, chunk, width); });
  return planCall(symbol, elements, 1, /*operands=*/1);
}

void addGpuAccumulateEmitters(KernelEmitters &emitters) {
  emitters.add<planAccumulate>();
}

} // namespace rota::lowering
