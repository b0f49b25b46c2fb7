// SPDX-License-Identifier: Apache-2.0
//
// The addition of a value to a gradient, for values whose own op cannot: a
// thread adds one chunk.
#include "lowering/gpu/GpuBuilder.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace rota::lowering {

static constexpr int64_t kThreads = 256;

/// Arguments: value, gradient; both f32.
static void emitAdd(GpuBuilder &k, int64_t chunks, int64_t width) {
  Type f32 = k.ops().getF32Type();
  Memory value = k.argument(0, f32), gradient = k.argument(1, f32);
  Value chunk = k.add(k.widen(k.mul(k.block(), kThreads)), k.widen(k.thread()));
  k.when(k.isWithin(chunk, chunks), [&] {
    Value at = k.mul(chunk, width);
    k.store(k.addf(k.loadVector(gradient, at, width),
                   k.loadVector(value, at, width)),
            gradient, at);
  });
}

static FailureOr<KernelPlan> planAccumulate(mlir::rota::AccumulateOp op,
                                            KernelLibrary &library) {
  int64_t elements =
      cast<RankedTensorType>(op.getValue().getType()).getNumElements();
  int64_t width = chunkWidth(elements, 32), chunks = elements / width;
  auto symbol = emitGpuKernel(
      library, op.getLoc(), "add", std::to_string(elements),
      /*arguments=*/2, llvm::divideCeil(chunks, kThreads), kThreads,
      [&](GpuBuilder &k) { emitAdd(k, chunks, width); });
  if (failed(symbol))
    return failure();
  KernelPlan plan;
  plan.calls.push_back({*symbol,
                        elements,
                        1,
                        {{KernelArgument::Kind::Operand, 0},
                         {KernelArgument::Kind::Result, 0}}});
  return plan;
}

void addGpuAccumulateEmitters(KernelEmitters &emitters) {
  emitters.add<planAccumulate>();
}

} // namespace rota::lowering
