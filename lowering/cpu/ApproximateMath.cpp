// SPDX-License-Identifier: Apache-2.0
//
// Math functions as polynomials, bf16 conversions as integer arithmetic.
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

#include "lowering/Vectors.h"
#include "lowering/cpu/Passes.h"

namespace rota::lowering {
#define GEN_PASS_DEF_APPROXIMATEMATH
#include "lowering/cpu/CpuPasses.h.inc"

namespace {
struct ApproximateMath : impl::ApproximateMathBase<ApproximateMath> {
  void runOnOperation() override {
    mlir::RewritePatternSet patterns(&getContext());
    mlir::populateMathPolynomialApproximationPatterns(
        patterns, mlir::MathPolynomialApproximationOptions{});
    mlir::arith::populateExpandBFloat16Patterns(patterns);
    if (failed(verifyVectors(getOperation())) ||
        failed(
            mlir::applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};
} // namespace
} // namespace rota::lowering
