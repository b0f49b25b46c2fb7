// SPDX-License-Identifier: Apache-2.0
//
// The addition of a value to a gradient, for values whose own op cannot. A row
// is as many elements as a vector has where that divides the tensor, so that
// one kernel serves most shapes.
#include "lowering/kernels/Emit.h"
#include "lowering/kernels/KernelPlan.h"

#include "ir/rota/model/Model.h"
#include "ir/rota/model/Update.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace rota::lowering {

static FailureOr<KernelPlan> planAccumulate(mlir::rota::AccumulateOp op,
                                            KernelLibrary &library) {
  int64_t elements =
      cast<RankedTensorType>(op.getValue().getType()).getNumElements();
  int64_t width = elements % kVectorWidth == 0 ? kVectorWidth : 1;
  Type type = mlir::rota::gradientType(
      mlir::rota::lookupParam(op, op.getParamAttr().getAttr()));
  auto emit = [&](OpBuilder &builder, StringRef symbol) {
    emitKernelFunction(
        builder, symbol, 2,
        [&](ImplicitLocOpBuilder &b, ValueRange pointers, Value begin,
            Value end) {
          Type f32 = b.getF32Type();
          emitLoop(b, begin, end, constant(b, int64_t(1)), {},
                   [&](Value row, ValueRange) -> SmallVector<Value> {
                     Value at =
                         arith::MulIOp::create(b, row, constant(b, width));
                     Value sum = arith::AddFOp::create(
                         b, loadWide(b, pointers[1], type, at, width),
                         load(b, pointers[0], f32, at, width));
                     storeRounded(b, sum, pointers[1], type, at);
                     return {};
                   });
        });
    return success();
  };
  std::string key = (type.isBF16() ? "bf16 " : "") + std::to_string(width);
  auto symbol = library.getOrEmit("add", key, emit);
  return planCall(symbol, elements / width, /*grain=*/4096 / width,
                  /*operands=*/1);
}

void addAccumulateEmitters(KernelEmitters &emitters) {
  emitters.add<planAccumulate>();
}

} // namespace rota::lowering
