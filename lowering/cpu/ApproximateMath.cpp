// SPDX-License-Identifier: Apache-2.0
//
// Math functions as polynomials, bf16 conversions as integer arithmetic.
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

#include "lowering/Vectors.h"
#include "lowering/cpu/Passes.h"

using namespace mlir;

namespace rota::lowering {
#define GEN_PASS_DEF_APPROXIMATEMATH
#include "lowering/cpu/CpuPasses.h.inc"

namespace {

/// f32 to bf16 by integers, to nearest even; a NaN becomes 0x7fc0, as by MLIR.
/// A NaN is replaced before it is rounded: LLVM takes the choice between two
/// bf16 apart into scalars where a processor has no arithmetic of bf16.
struct RoundToBf16 : OpRewritePattern<arith::TruncFOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::TruncFOp op,
                                PatternRewriter &rewriter) const override {
    Value operand = op.getIn();
    Type from = operand.getType(), to = op.getType();
    if (!getElementTypeOrSelf(from).isF32() ||
        !getElementTypeOrSelf(to).isBF16())
      return failure();
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    auto typeOf = [&](Type element) -> Type {
      auto vector = dyn_cast<VectorType>(from);
      return vector ? Type(vector.clone(element)) : element;
    };
    Type words = typeOf(b.getI32Type()), halves = typeOf(b.getI16Type());
    auto word = [&](int64_t value) {
      return createScalarOrSplatConstant(b, b.getLoc(), words, value);
    };
    Value quiet = createScalarOrSplatConstant(
        b, b.getLoc(), from, llvm::APFloat::getQNaN(APFloat::IEEEsingle()));
    Value isNan =
        arith::CmpFOp::create(b, arith::CmpFPredicate::UNO, operand, operand);
    Value number = arith::SelectOp::create(b, isNan, quiet, operand);
    Value bits = arith::BitcastOp::create(b, words, number);
    Value isOdd = arith::AndIOp::create(
        b, arith::ShRUIOp::create(b, bits, word(16)), word(1));
    Value sum = arith::AddIOp::create(
        b, bits, arith::AddIOp::create(b, isOdd, word(0x7fff)));
    Value rounded = arith::TruncIOp::create(
        b, halves, arith::ShRUIOp::create(b, sum, word(16)));
    rewriter.replaceOpWithNewOp<arith::BitcastOp>(op, to, rounded);
    return success();
  }
};

struct ApproximateMath : impl::ApproximateMathBase<ApproximateMath> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    populateMathPolynomialApproximationPatterns(
        patterns, MathPolynomialApproximationOptions{});
    arith::populateExpandBFloat16Patterns(patterns);
    // The benefit puts it before that of MLIR.
    patterns.add<RoundToBf16>(&getContext(), /*benefit=*/2);
    if (failed(verifyVectors(getOperation())) ||
        failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};
} // namespace
} // namespace rota::lowering
