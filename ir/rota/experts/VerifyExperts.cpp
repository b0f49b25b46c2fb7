// SPDX-License-Identifier: Apache-2.0
//
// Verifiers of the ops of a mixture of experts. Labels C1..Cn are those of the
// ops' descriptions.
#include "ir/rota/Checks.h"
#include "ir/rota/experts/CountedRows.h"
#include "runtime/program/Text.h"

using namespace mlir;
using namespace mlir::rota;

static LogicalResult checkScaling(Operation *op, const APFloat &scaling) {
  if (scaling.isFinite() && !scaling.isNegative() && !scaling.isZero())
    return success();
  return op->emitOpError("expected a finite scaling above 0, got ")
         << ::rota::numberText(scaling.convertToDouble());
}

/// C1 of route and its derivative: logits [B, S, X], `choices` [B, S, k].
static LogicalResult checkRouting(Operation *op, Value logits, Value experts,
                                  StringRef what, Value weights) {
  if (failed(checkRank(op, "logits", logits, 3)) ||
      failed(checkRank(op, "experts", experts, 3)))
    return failure();
  ArrayRef<int64_t> shape = shapeOf(logits);
  int64_t k = shapeOf(experts)[2];
  if (failed(checkShape(op, "experts", experts, {shape[0], shape[1], k})) ||
      failed(checkShape(op, what, weights, {shape[0], shape[1], k})) ||
      failed(checkElement(op, what, weights, elementOf(logits))))
    return failure();
  if (k < 1 || k > shape[2])
    return op->emitOpError("expected from 1 to ")
           << shape[2] << " choices of " << shape[2] << " experts, got " << k;
  return success();
}

LogicalResult RouteOp::verify() {
  if (failed(checkRouting(*this, getLogits(), getExperts(), "weights",
                          getWeights())))
    return failure();
  // C2: a bias is [X].
  int64_t experts = shapeOf(getLogits())[2];
  if (getBias() && (failed(checkShape(*this, "a bias", getBias(), {experts})) ||
                    failed(checkElement(*this, "a bias", getBias(),
                                        elementOf(getLogits())))))
    return failure();
  // C3: groups of equal size, enough of them.
  if (bool(getGroups()) != bool(getTopGroups()))
    return emitOpError("expected groups and top_groups together, got ")
           << (getGroups() ? "groups" : "top_groups") << " alone";
  if (getGroups()) {
    int64_t groups = *getGroups(), top = *getTopGroups(),
            k = shapeOf(getExperts())[2];
    if (groups < 1 || experts % groups != 0)
      return emitOpError("expected a number of groups that divides ")
             << experts << " experts, got " << groups;
    if (top < 1 || top > groups || top * (experts / groups) < k)
      return emitOpError("expected from 1 to ")
             << groups << " top groups of " << experts / groups
             << " experts each that have " << k << " experts or more, got "
             << top;
  }
  // C4: the scaling.
  if (failed(checkScaling(*this, getScaling())))
    return failure();
  // C5: a rate of a bias.
  if (!getBiasRate())
    return success();
  double rate = getBiasRate()->convertToDouble();
  if (!std::isfinite(rate) || rate <= 0)
    return emitOpError("expected a finite bias_rate above 0, got ")
           << ::rota::numberText(rate);
  if (!getBias())
    return emitOpError("expected a bias for a bias_rate of ")
           << ::rota::numberText(rate);
  return success();
}

LogicalResult RouteGradOp::verify() {
  if (failed(checkRouting(*this, getLogits(), getExperts(), "a cotangent",
                          getCotangent())) ||
      failed(checkType(*this, "a result", getResult(), getLogits().getType())))
    return failure();
  return checkScaling(*this, getScaling());
}

LogicalResult ExpertPlacesOp::verify() {
  // C1: experts [B, S, k], counts [B, X].
  if (failed(checkRank(*this, "experts", getExperts(), 3)) ||
      failed(checkRank(*this, "counts", getCounts(), 2)))
    return failure();
  int64_t experts = shapeOf(getCounts())[1];
  if (failed(checkShape(*this, "counts", getCounts(),
                        {shapeOf(getExperts())[0], experts})) ||
      failed(verifyBlocks(*this, getBlocks(), getRows(), experts)))
    return failure();
  // C3: a capacity is positive.
  if (getCapacity() && int64_t(*getCapacity()) < 1)
    return emitOpError("expected a capacity of 1 row or more, got ")
           << int64_t(*getCapacity());
  return success();
}

/// C1 and C2 of grouped ops: rows [B, R, ...], counts [B, X].
static LogicalResult checkGroups(Operation *op, Value rows, Value counts,
                                 int64_t experts, int64_t blocks) {
  if (failed(checkRank(op, "rows", rows, 3)) ||
      failed(checkShape(op, "counts", counts, {shapeOf(rows)[0], experts})))
    return failure();
  return verifyBlocks(op, blocks, shapeOf(rows)[1], experts);
}

/// Counts of the rows of a choice, where an op has them.
template <typename Op> static LogicalResult checkPlacedCounts(Op op) {
  if (op.getCounts())
    return verifyCountedRows(op, op.getRows(), op.getCounts(), op.getBlocks(),
                             op.getFill());
  if (op.getBlocks() == 1 && !op.getFill())
    return success();
  return op.emitOpError("expected counts with blocks or a fill, got none");
}

/// C1 of the ops between tokens [B, S, E] and rows [B, R, E], and weights and
/// an offset where there are some.
static LogicalResult checkPlaced(Operation *op, Value tokens, Value rows,
                                 Value places, Value weights, Value offset) {
  if (failed(checkRank(op, "tokens", tokens, 3)) ||
      failed(checkRank(op, "rows", rows, 3)) ||
      failed(checkRank(op, "places", places, 3)))
    return failure();
  ArrayRef<int64_t> shape = shapeOf(tokens), choices = shapeOf(places);
  if (failed(checkShape(op, "rows", rows,
                        {shape[0], shapeOf(rows)[1], shape[2]})) ||
      failed(checkElement(op, "rows", rows, elementOf(tokens))) ||
      failed(
          checkShape(op, "places", places, {shape[0], shape[1], choices[2]})))
    return failure();
  if (weights && failed(checkShape(op, "weights", weights, choices)))
    return failure();
  return checkOffset(op, offset);
}

LogicalResult DispatchOp::verify() {
  if (failed(checkPlaced(*this, getTokens(), getRows(), getPlaces(),
                         getWeights(), getOffset())))
    return failure();
  // C4 and C5: counts.
  return checkPlacedCounts(*this);
}

LogicalResult CombineOp::verify() {
  if (failed(checkPlaced(*this, getTokens(), getRows(), getPlaces(),
                         getWeights(), getOffset())))
    return failure();
  // C4 and C5: counts.
  return checkPlacedCounts(*this);
}

LogicalResult ChoiceDotOp::verify() {
  if (failed(checkPlaced(*this, getTokens(), getRows(), getPlaces(), Value(),
                         getOffset())))
    return failure();
  // C3 and C4: counts.
  if (failed(checkPlacedCounts(*this)))
    return failure();
  return checkShape(*this, "a result", getResult(), shapeOf(getPlaces()));
}

LogicalResult GroupedProductOp::verify() {
  if (failed(checkRank(*this, "rows", getRows(), 3)) ||
      failed(checkRank(*this, "weights", getWeights(), 3)))
    return failure();
  ArrayRef<int64_t> rows = shapeOf(getRows()), weights = shapeOf(getWeights());
  int64_t width = weights[getTransposed() ? 1 : 2];
  SmallVector<int64_t, 3> expected{weights[0], rows[2], width};
  if (getTransposed())
    std::swap(expected[1], expected[2]);
  if (failed(checkShape(*this, "weights", getWeights(), expected)) ||
      failed(checkShape(*this, "a result", getResult(),
                        {rows[0], rows[1], width})) ||
      failed(
          checkGroups(*this, getRows(), getCounts(), weights[0], getBlocks())))
    return failure();
  // C3: one element type.
  if (failed(
          checkElement(*this, "weights", getWeights(), elementOf(getRows()))))
    return failure();
  if (failed(verifyFill(*this, getFill())))
    return failure();
  return checkOffset(*this, getOffset());
}

LogicalResult GroupedProductGradOp::verify() {
  if (failed(checkRank(*this, "lhs", getLhs(), 3)) ||
      failed(checkRank(*this, "rhs", getRhs(), 3)) ||
      failed(checkRank(*this, "a result", getResult(), 3)))
    return failure();
  ArrayRef<int64_t> lhs = shapeOf(getLhs()), rhs = shapeOf(getRhs());
  int64_t experts = shapeOf(getResult())[0];
  if (failed(checkShape(*this, "rhs", getRhs(), {lhs[0], lhs[1], rhs[2]})) ||
      failed(checkShape(*this, "a result", getResult(),
                        {experts, lhs[2], rhs[2]})) ||
      failed(checkGroups(*this, getLhs(), getCounts(), experts, getBlocks())))
    return failure();
  // C3: one element type.
  if (failed(checkElement(*this, "rhs", getRhs(), elementOf(getLhs()))))
    return failure();
  return verifyFill(*this, getFill());
}

LogicalResult GroupedBiasOp::verify() {
  if (failed(checkRank(*this, "rows", getRows(), 3)) ||
      failed(checkRank(*this, "a bias", getBias(), 2)))
    return failure();
  int64_t experts = shapeOf(getBias())[0];
  if (failed(checkShape(*this, "a bias", getBias(),
                        {experts, shapeOf(getRows())[2]})))
    return failure();
  return checkGroups(*this, getRows(), getCounts(), experts, getBlocks());
}

LogicalResult GroupedBiasGradOp::verify() {
  if (failed(checkRank(*this, "a cotangent", getCotangent(), 3)) ||
      failed(checkRank(*this, "a result", getResult(), 2)))
    return failure();
  int64_t experts = shapeOf(getResult())[0];
  if (failed(checkShape(*this, "a result", getResult(),
                        {experts, shapeOf(getCotangent())[2]})))
    return failure();
  return checkGroups(*this, getCotangent(), getCounts(), experts, getBlocks());
}

LogicalResult ObserveOp::verify() {
  // C1: counts [B, X].
  if (failed(checkRank(*this, "counts", getCounts(), 2)))
    return failure();
  // C2: a sum of each row.
  if (getEach() && int64_t(*getEach()) < 1)
    return emitOpError("expected 1 or more for each row, got ")
           << int64_t(*getEach());
  // C3: a function of a layer.
  if (!(*this)->getParentOfType<LayerOp>())
    return emitOpError("expected to stand in a function of a 'rota.layer'");
  return success();
}

bool ObserveOp::isAveraged() {
  auto reads = [&](ObservedMeanOp mean) {
    return mean.getName() == getName() ? WalkResult::interrupt()
                                       : WalkResult::advance();
  };
  return (*this)->getParentOfType<LayerOp>()->walk(reads).wasInterrupted();
}

LogicalResult ObservedMeanOp::verify() {
  // C1: a result [X].
  if (failed(checkRank(*this, "a result", getResult(), 1)))
    return failure();
  // C2: a function of a layer.
  if (!(*this)->getParentOfType<LayerOp>())
    return emitOpError("expected to stand in a function of a 'rota.layer'");
  return success();
}
