// SPDX-License-Identifier: Apache-2.0
//
// The ops that only move elements: reshape, split, concat.
#include "ir/rota/OpFamily.h"

#include <numeric>

using namespace mlir;
using namespace mlir::rota;

LogicalResult ReshapeOp::verify() {
  // C1: same number of elements.
  if (tensorOf(getInput()).getNumElements() !=
      tensorOf(getResult()).getNumElements())
    return emitOpError("expected ")
           << tensorOf(getInput()).getNumElements() << " elements, got "
           << tensorOf(getResult()).getNumElements();
  // C2: one element type.
  return checkElement(*this, "a result", getResult(), elementOf(getInput()));
}

OpFoldResult ReshapeOp::fold(FoldAdaptor) {
  if (getInput().getType() == getType())
    return getInput();
  if (auto producer = getInput().getDefiningOp<ReshapeOp>())
    if (producer.getInput().getType() == getType())
      return producer.getInput();
  return {};
}

/// C1 to C3 of a tensor and its parts along a dimension.
static LogicalResult verifySplit(Operation *op, Value whole, ValueRange parts,
                                 uint64_t dim) {
  SmallVector<int64_t> shape(shapeOf(whole));
  // C1: a dimension of the whole.
  if (dim >= shape.size())
    return op->emitOpError("expected a dimension below ")
           << shape.size() << ", got " << dim;
  int64_t size = shape[dim], sum = 0;
  for (Value part : parts) {
    // C2: sizes agree elsewhere.
    shape[dim] = tensorOf(part).getRank() == int64_t(shape.size())
                     ? shapeOf(part)[dim]
                     : 0;
    sum += shape[dim];
    if (failed(checkShape(op, "a part", part, shape)) ||
        // C3: one element type.
        failed(checkElement(op, "a part", part, elementOf(whole))))
      return failure();
  }
  // C2: and add up along the dimension.
  if (sum != size)
    return op->emitOpError("expected parts of ")
           << size << " in dimension " << dim << ", got " << sum;
  return success();
}

LogicalResult SplitOp::verify() {
  return verifySplit(*this, getInput(), getParts(), getDim());
}

LogicalResult ConcatOp::verify() {
  return verifySplit(*this, getResult(), getParts(), getDim());
}

FailureOr<Cotangents> ReshapeOp::vjp(OpBuilder &builder, ValueRange cotangents,
                                     ArrayRef<bool>) {
  Type type = tensorOf(getInput()).clone(elementOf(cotangents[0]));
  return Cotangents{ReshapeOp::create(builder, getLoc(), type, cotangents[0])};
}

/// dx = the parts' cotangents in their places, zeros for those without one.
FailureOr<Cotangents> SplitOp::vjp(OpBuilder &builder, ValueRange cotangents,
                                   ArrayRef<bool>) {
  SmallVector<Value> parts(cotangents);
  for (auto [part, value] : llvm::zip(parts, getParts()))
    if (!part)
      part = splatConstant(builder, getLoc(), value.getType(), 0.0);
  return Cotangents{ConcatOp::create(builder, getLoc(), getInput().getType(),
                                     parts, getDim())};
}

FailureOr<Cotangents> ConcatOp::vjp(OpBuilder &builder, ValueRange cotangents,
                                    ArrayRef<bool>) {
  auto split = SplitOp::create(builder, getLoc(), getOperandTypes(),
                               cotangents[0], getDim());
  return Cotangents(split.getParts());
}

/// Walks both shapes from the major end. What remains of the two current
/// dimensions shares the factor of their greatest common divisor; where that is
/// 1 the dimensions up to the next common boundary are whole on either side.
FactorRule ReshapeOp::getFactorRule() {
  RuleBuilder builder;
  builder.linear({0});
  ArrayRef<int64_t> from = shapeOf(getInput()), to = shapeOf(getResult());
  Dimensions operand(from.size()), result(to.size());
  size_t i = 0, j = 0;
  int64_t left = from.empty() ? 1 : from[0], right = to.empty() ? 1 : to[0];
  auto nextLeft = [&] { left = ++i < from.size() ? from[i] : 1; };
  auto nextRight = [&] { right = ++j < to.size() ? to[j] : 1; };
  while (i < from.size() || j < to.size()) {
    if (i < from.size() && left == 1) {
      nextLeft();
    } else if (j < to.size() && right == 1) {
      nextRight();
    } else if (int64_t common = std::gcd(left, right); common > 1) {
      int64_t factor = builder.factor(common);
      operand[i].push_back(factor);
      result[j].push_back(factor);
      left /= common;
      right /= common;
    } else {
      // Coprime remainders: whole until the products of both sides agree.
      operand[i].push_back(builder.factor(left, /*divisible=*/false));
      result[j].push_back(builder.factor(right, /*divisible=*/false));
      int64_t leftProduct = left, rightProduct = right;
      while (leftProduct != rightProduct) {
        if (leftProduct < rightProduct) {
          nextLeft();
          leftProduct *= left;
          if (left != 1)
            operand[i].push_back(builder.factor(left, /*divisible=*/false));
        } else {
          nextRight();
          rightProduct *= right;
          if (right != 1)
            result[j].push_back(builder.factor(right, /*divisible=*/false));
        }
      }
      nextLeft();
      nextRight();
    }
  }
  return builder.finish({operand}, {result});
}

namespace {
/// A tensor and its parts along `dim`, which is whole everywhere.
struct SplitFactors {
  Dimensions whole;
  SmallVector<Dimensions> parts;

  SplitFactors(RuleBuilder &builder, Value value, ValueRange values,
               int64_t dim) {
    for (auto [index, size] : llvm::enumerate(shapeOf(value)))
      whole.push_back({builder.factor(size, int64_t(index) != dim)});
    for (Value part : values) {
      parts.push_back(whole);
      parts.back()[dim] = {
          builder.factor(shapeOf(part)[dim], /*divisible=*/false)};
    }
  }
};
} // namespace

FactorRule SplitOp::getFactorRule() {
  RuleBuilder builder;
  builder.linear({0});
  SplitFactors of(builder, getInput(), getParts(), getDim());
  return builder.finish({of.whole}, of.parts);
}

FactorRule ConcatOp::getFactorRule() {
  RuleBuilder builder;
  builder.linear(llvm::to_vector(llvm::seq<int64_t>(getParts().size())));
  SplitFactors of(builder, getResult(), getParts(), getDim());
  return builder.finish(of.parts, {of.whole});
}

Cost ReshapeOp::getCost() { return {}; }
Cost SplitOp::getCost() { return streamingCost(*this, 0); }
Cost ConcatOp::getCost() { return streamingCost(*this, 0); }
TaskForm ReshapeOp::getTaskForm() { return TaskForm::View; }
