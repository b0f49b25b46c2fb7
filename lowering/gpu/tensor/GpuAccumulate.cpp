// SPDX-License-Identifier: Apache-2.0
//
// The addition of a value to a gradient, for values whose own op cannot: a
// thread adds one chunk.
#include "lowering/gpu/GpuBuilder.h"

#include "ir/rota/model/Model.h"
#include "ir/rota/model/Update.h"

using namespace mlir;

namespace rota::lowering {

/// Arguments: value, f32, and gradient, of `type`.
static void emitAdd(GpuBuilder &k, Type type, Value chunk, int64_t width) {
  Type f32 = k.ops().getF32Type();
  Memory value = k.argument(0, f32), gradient = k.argument(1, type);
  Value at = k.mul(k.widen(chunk), width);
  k.store(
      k.addf(k.loadVector(gradient, at, width), k.loadVector(value, at, width)),
      gradient, at);
}

static FailureOr<KernelPlan> planAccumulate(mlir::rota::AccumulateOp op,
                                            KernelLibrary &library) {
  int64_t elements =
      cast<RankedTensorType>(op.getValue().getType()).getNumElements();
  Type type = mlir::rota::gradientType(
      mlir::rota::lookupParam(op, op.getParamAttr().getAttr()));
  int64_t width = chunkWidth(elements, type);
  std::string key = (type.isBF16() ? "bf16 " : "") + std::to_string(elements);
  auto symbol = emitEach(
      library, op.getLoc(), "add", key, /*arguments=*/2, elements / width,
      [&](GpuBuilder &k, Value chunk) { emitAdd(k, type, chunk, width); });
  return planCall(symbol, elements, 1, /*operands=*/1);
}

void addGpuAccumulateEmitters(KernelEmitters &emitters) {
  emitters.add<planAccumulate>();
}

} // namespace rota::lowering
