// SPDX-License-Identifier: Apache-2.0
//
// Split and concat on a GPU: a thread copies one chunk of a row of a part.
#include "lowering/gpu/GpuBuilder.h"
#include "lowering/kernels/tensor/SplitPlan.h"

#include <numeric>

using namespace mlir;

namespace rota::lowering {

static FailureOr<std::string> emitCopy(Operation *op, KernelLibrary &library,
                                       const PartOfRows &part) {
  // Chunks are aligned in both tensors.
  int64_t common = std::gcd(std::gcd(part.columns, part.width), part.begin);
  int64_t chunk = chunkWidth(common, part.element);
  int64_t chunks = part.width / chunk;
  std::string key = std::to_string(part.rows) + "x" + part.key();
  return emitEach(library, op->getLoc(), "split", key, 2, part.rows * chunks,
                  [&](GpuBuilder &k, Value number) {
                    Memory from = k.argument(0, part.element);
                    Memory to = k.argument(1, part.element);
                    Value row = k.widen(k.div(number, chunks));
                    Value column = k.widen(k.mul(k.rem(number, chunks), chunk));
                    Value inPart = k.add(k.mul(row, part.width), column);
                    Value inWhole = k.add(
                        k.add(k.mul(row, part.columns), column), part.begin);
                    Value value = k.loadVector(
                        from, part.isSplit ? inWhole : inPart, chunk);
                    k.store(value, to, part.isSplit ? inPart : inWhole);
                  });
}

static FailureOr<KernelPlan> planSplit(mlir::rota::SplitOp op,
                                       KernelLibrary &library) {
  return planParts(
      op.getInput(), op.getParts(), op.getDim(), /*isSplit=*/true,
      [&](const PartOfRows &part) { return emitCopy(op, library, part); });
}

static FailureOr<KernelPlan> planConcat(mlir::rota::ConcatOp op,
                                        KernelLibrary &library) {
  return planParts(
      op.getResult(), op.getParts(), op.getDim(), /*isSplit=*/false,
      [&](const PartOfRows &part) { return emitCopy(op, library, part); });
}

void addGpuSplitEmitters(KernelEmitters &emitters) {
  emitters.add<planSplit>();
  emitters.add<planConcat>();
}

} // namespace rota::lowering
