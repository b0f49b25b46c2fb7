// SPDX-License-Identifier: Apache-2.0
//
// Math functions as instructions of a GPU.
#include "lowering/Vectors.h"
#include "lowering/gpu/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

#include <numbers>

using namespace mlir;

namespace rota::lowering {
#define GEN_PASS_DEF_GPUMATH
#include "lowering/gpu/GpuPasses.h.inc"

namespace {

bool isF32(Value value) { return getElementTypeOrSelf(value).isF32(); }

/// `number` in every element of `type`.
Value constantLike(OpBuilder &b, Location loc, Type type, float number) {
  TypedAttr value = b.getF32FloatAttr(number);
  if (auto vector = dyn_cast<VectorType>(type))
    value = DenseElementsAttr::get(vector, Attribute(value));
  return arith::ConstantOp::create(b, loc, value);
}

/// A call of an LLVM intrinsic that is overloaded by type: its name here is
/// without the types, which LLVM's translation adds.
Value callIntrinsic(OpBuilder &b, Location loc, StringRef name, Type type,
                    ValueRange operands, LLVM::FastmathFlags flags = {}) {
  auto call = LLVM::CallIntrinsicOp::create(b, loc, type, b.getStringAttr(name),
                                            operands);
  call.setFastmathFlags(flags);
  return call.getResults();
}

/// e^x is 2^(x * log2(e)).
LogicalResult rewriteExp(math::ExpOp op, PatternRewriter &rewriter) {
  if (!isF32(op))
    return failure();
  Type type = op.getType();
  Value scale = constantLike(rewriter, op.getLoc(), type, std::numbers::log2e);
  Value power =
      arith::MulFOp::create(rewriter, op.getLoc(), op.getOperand(), scale);
  rewriter.replaceOp(
      op, callIntrinsic(rewriter, op.getLoc(), "llvm.exp2", type, power));
  return success();
}

/// Functions that are one instruction, or a few, of the same name.
template <typename OpTy> struct SameFunction : OpRewritePattern<OpTy> {
  SameFunction(MLIRContext *context, StringRef intrinsic)
      : OpRewritePattern<OpTy>(context), intrinsic(intrinsic) {}

  LogicalResult matchAndRewrite(OpTy op,
                                PatternRewriter &rewriter) const override {
    if (!isF32(op))
      return failure();
    rewriter.replaceOp(op, callIntrinsic(rewriter, op.getLoc(), intrinsic,
                                         op.getType(), op->getOperands()));
    return success();
  }

  StringRef intrinsic;
};

/// There is an instruction for a scalar logarithm alone, to the base 2.
LogicalResult rewriteLog(math::LogOp op, PatternRewriter &rewriter) {
  if (!op.getType().isF32())
    return failure();
  Value log2 = callIntrinsic(rewriter, op.getLoc(), "llvm.nvvm.lg2.approx.f",
                             op.getType(), op.getOperand());
  Value scale =
      constantLike(rewriter, op.getLoc(), op.getType(), std::numbers::ln2);
  rewriter.replaceOpWithNewOp<arith::MulFOp>(op, log2, scale);
  return success();
}

Value approximateSqrt(OpBuilder &b, Location loc, Value value) {
  return callIntrinsic(b, loc, "llvm.sqrt", value.getType(), value,
                       LLVM::FastmathFlags::afn);
}

LogicalResult rewriteSqrt(math::SqrtOp op, PatternRewriter &rewriter) {
  if (!isF32(op))
    return failure();
  rewriter.replaceOp(op,
                     approximateSqrt(rewriter, op.getLoc(), op.getOperand()));
  return success();
}

/// LLVM makes one instruction of the two.
LogicalResult rewriteRsqrt(math::RsqrtOp op, PatternRewriter &rewriter) {
  if (!isF32(op))
    return failure();
  Value root = approximateSqrt(rewriter, op.getLoc(), op.getOperand());
  Value one = constantLike(rewriter, op.getLoc(), op.getType(), 1.0f);
  rewriter.replaceOpWithNewOp<arith::DivFOp>(op, one, root,
                                             arith::FastMathFlags::afn);
  return success();
}

LogicalResult rewriteDivision(arith::DivFOp op, PatternRewriter &rewriter) {
  auto approximate = arith::FastMathFlags::afn;
  if (!isF32(op) || bitEnumContainsAll(op.getFastmath(), approximate))
    return failure();
  rewriter.modifyOpInPlace(
      op, [&] { op.setFastmath(op.getFastmath() | approximate); });
  return success();
}

/// The polynomials that CPU code has, for functions without an instruction.
bool isPolynomial(StringRef name) {
  return name != math::ExpOp::getOperationName() &&
         name != math::Exp2Op::getOperationName() &&
         name != math::LogOp::getOperationName() &&
         name != math::RsqrtOp::getOperationName();
}

struct GpuMath : impl::GpuMathBase<GpuMath> {
  void runOnOperation() override {
    // First polynomials, which hold some of the functions below.
    MLIRContext *context = &getContext();
    RewritePatternSet polynomials(context);
    populateMathPolynomialApproximationPatterns(polynomials, isPolynomial);
    RewritePatternSet instructions(context);
    instructions.add(rewriteExp);
    instructions.add(rewriteLog);
    instructions.add(rewriteSqrt);
    instructions.add(rewriteRsqrt);
    instructions.add(rewriteDivision);
    instructions.add<SameFunction<arith::MaxNumFOp>>(context, "llvm.maxnum");
    instructions.add<SameFunction<arith::MinNumFOp>>(context, "llvm.minnum");
    instructions.add<SameFunction<math::AbsFOp>>(context, "llvm.fabs");
    instructions.add<SameFunction<math::CeilOp>>(context, "llvm.ceil");
    instructions.add<SameFunction<math::CopySignOp>>(context, "llvm.copysign");
    instructions.add<SameFunction<math::Exp2Op>>(context, "llvm.exp2");
    instructions.add<SameFunction<math::FloorOp>>(context, "llvm.floor");
    instructions.add<SameFunction<math::FmaOp>>(context, "llvm.fma");
    if (failed(verifyVectors(getOperation())) ||
        failed(applyPatternsGreedily(getOperation(), std::move(polynomials))) ||
        failed(applyPatternsGreedily(getOperation(), std::move(instructions))))
      signalPassFailure();
  }
};

} // namespace
} // namespace rota::lowering
