// SPDX-License-Identifier: Apache-2.0
#include "lowering/executable/GroupedGemm.h"

#include "ir/rota/experts/Experts.h"

using namespace mlir;

namespace rota::lowering {

static RankedTensorType tensorOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}

static int32_t type(Value value) {
  return tensorOf(value).getElementType().isBF16() ? ROTA_BF16 : ROTA_F32;
}

/// A description of products of `rows` [batch, rows, in] and `counts`.
static RotaGroupedGemm describe(Value rows, Value counts, int64_t blocks,
                                int64_t out, Value result) {
  RotaGroupedGemm gemm = {};
  gemm.batch = tensorOf(rows).getDimSize(0);
  gemm.rows = tensorOf(rows).getDimSize(1);
  gemm.in = tensorOf(rows).getDimSize(2);
  gemm.out = out;
  gemm.experts = tensorOf(counts).getDimSize(1);
  gemm.blocks = blocks;
  gemm.typeA = type(rows);
  gemm.typeC = type(result);
  return gemm;
}

FailureOr<std::optional<GroupedGemmPlan>> planGroupedGemm(Operation *op) {
  GroupedGemmPlan plan;
  if (auto product = dyn_cast<mlir::rota::GroupedProductOp>(op)) {
    plan.gemm = describe(
        product.getRows(), product.getCounts(), product.getBlocks(),
        tensorOf(product.getResult()).getDimSize(2), product.getResult());
    plan.gemm.transposed = product.getTransposed();
    return {plan};
  }
  auto grad = dyn_cast<mlir::rota::GroupedProductGradOp>(op);
  if (!grad)
    return std::optional<GroupedGemmPlan>();
  if (type(grad.getResult()) != ROTA_F32)
    return grad.emitOpError("expected a result of f32, which sums are made in, "
                            "got ")
           << grad.getResult().getType();
  plan.gemm = describe(grad.getLhs(), grad.getCounts(), grad.getBlocks(),
                       tensorOf(grad.getRhs()).getDimSize(2), grad.getResult());
  plan.isGradient = true;
  return {plan};
}

} // namespace rota::lowering
