// SPDX-License-Identifier: Apache-2.0
//
// The addition of a value to a gradient, for values whose own op cannot, on
// every device. A row is as many elements as a vector has where that divides
// the tensor, so that one kernel serves most shapes.
#include "lowering/kernels/Emit.h"
#include "lowering/kernels/RowBuilder.h"

#include "ir/rota/model/Model.h"
#include "ir/rota/model/Update.h"

#include <numeric>

using namespace mlir;

namespace rota::lowering {

/// Arguments: value, f32, and gradient, of `type`.
static void emitAdd(RowBuilder &k, Type type, int64_t width, Value row) {
  Value start = k.mul(row, width);
  Memory value = k.offset(k.argument(0, k.ops().getF32Type()), start);
  Memory gradient = k.offset(k.argument(1, type), start);
  k.overColumns(width, [&](Value at, ArrayRef<int64_t> counts) {
    for (int64_t count : counts) {
      k.storeVector(k.addf(k.loadVector(gradient, at, count),
                           k.loadVector(value, at, count)),
                    gradient, at, count);
      at = k.add(at, k.lanes());
    }
  });
}

static FailureOr<KernelPlan> planAccumulate(mlir::rota::AccumulateOp op,
                                            KernelLibrary &library) {
  int64_t elements =
      cast<RankedTensorType>(op.getValue().getType()).getNumElements();
  int64_t width = std::gcd(elements, kVectorWidth);
  Type type = mlir::rota::gradientType(
      mlir::rota::lookupParam(op, op.getParamAttr().getAttr()));
  std::string key = (type.isBF16() ? "bf16 " : "") + std::to_string(width);
  RowForm space{elements / width, width, type.getIntOrFloatBitWidth(),
                /*most=*/256, /*alone=*/true};
  auto symbol = emitRowCode(
      library, op.getLoc(), "add", key, /*arguments=*/2, space,
      [&](RowBuilder &k, Value row) { emitAdd(k, type, width, row); });
  return planCall(symbol, elements / width, /*grain=*/4096 / width,
                  /*operands=*/1);
}

void addAccumulateEmitters(KernelEmitters &emitters) {
  emitters.add<planAccumulate>();
}

} // namespace rota::lowering
