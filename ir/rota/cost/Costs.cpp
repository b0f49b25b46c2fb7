// SPDX-License-Identifier: Apache-2.0
//
// Costs of the rota ops. Operations are counted from the formulas of the ops'
// descriptions, an exponential or a root as one; bytes are those of all
// operands and results, as if nothing were fused. Ops that become no code
// cost nothing.
#include "ir/rota/Rules.h"
#include "ir/rota/experts/CountedRows.h"

using namespace mlir;
using namespace mlir::rota;

static double elementsOf(Value value) {
  auto tensor = dyn_cast<RankedTensorType>(value.getType());
  return tensor ? double(tensor.getNumElements()) : 1.0;
}

static double bytesOf(Value value) {
  unsigned bits = getElementTypeOrSelf(value).getIntOrFloatBitWidth();
  return elementsOf(value) * double(llvm::divideCeil(bits, 8));
}

Cost rota::streamingCost(Operation *op, double flops) {
  Cost cost;
  cost.flops = flops;
  for (Value operand : op->getOperands())
    cost.bytesRead += bytesOf(operand);
  for (Value result : op->getResults())
    cost.bytesWritten += bytesOf(result);
  return cost;
}

Cost ReadOp::getCost() { return {}; }

/// Reads the value and the gradient, writes the gradient.
Cost AccumulateOp::getCost() {
  double bytes = bytesOf(getValue());
  return {elementsOf(getValue()), 2 * bytes, bytes};
}

/// Reads the sum and the term, writes the term.
Cost AuxiliaryLossOp::getCost() {
  double bytes = bytesOf(getSum());
  return {1, 2 * bytes, bytes};
}

/// Filled at the start of a step.
Cost AuxiliaryCotangentOp::getCost() { return {}; }

Cost NameOp::getCost() { return {}; }

Cost ReshapeOp::getCost() { return {}; }

/// The table is made once at start.
Cost RotaryTableOp::getCost() { return {}; }

/// A multiply-add per combination of letters.
Cost EinsumOp::getCost() {
  Letters letters = getLetters();
  double combinations = elementsOf(getResult());
  auto shape = cast<RankedTensorType>(getLhs().getType()).getShape();
  for (auto [letter, size] : llvm::zip(letters.lhs, shape))
    if (!letters.result.contains(letter))
      combinations *= double(size);
  return streamingCost(*this, 2 * combinations);
}

Cost ReduceOp::getCost() {
  return streamingCost(*this, elementsOf(getInput()));
}

Cost BroadcastOp::getCost() { return streamingCost(*this, 0); }

Cost SplitOp::getCost() { return streamingCost(*this, 0); }

Cost ConcatOp::getCost() { return streamingCost(*this, 0); }

/// x*x, +, *r, *gain; the mean: +, -.
Cost RMSNormOp::getCost() {
  return streamingCost(*this, (getCentered() ? 6 : 4) * elementsOf(getInput()));
}

/// x*x, +; dy*gain, *x, +; r*g, x*c, -; dy*x, *r, +; two means: +, -.
Cost RMSNormGradOp::getCost() {
  return streamingCost(*this,
                       (getCentered() ? 15 : 11) * elementsOf(getInput()));
}

/// Operations of an activation function and of its derivative, which computes
/// some of the former: silu is negate, exp, +, / and s, 1-s, x*, 1+, *.
static std::pair<double, double> activationFlops(ActivationKind kind) {
  switch (kind) {
  case ActivationKind::Silu:
    return {4, 8};
  case ActivationKind::Gelu: // x/sqrt(2), erf, /2, +, *x; x*x, /2, exp, *, *x,
                             // +
    return {5, 10};
  case ActivationKind::GeluTanh: // x*x, *, +, *x; then as silu, w' is 3
    return {8, 15};
  }
  llvm_unreachable("every activation is listed");
}

Cost ActivationOp::getCost() {
  double flops = activationFlops(getKind()).first + (getUp() ? 1 : 0);
  return streamingCost(*this, flops * elementsOf(getInput()));
}

/// dy * f'; gated dy * up besides, and dy * f.
Cost ActivationGradOp::getCost() {
  double flops = activationFlops(getKind()).second + 1;
  if (getUp())
    flops += 3;
  return streamingCost(*this, flops * elementsOf(getInput()));
}

/// Four products and two sums a pair.
Cost RopeOp::getCost() {
  return streamingCost(*this, 3 * elementsOf(getInput()));
}

static int64_t lastDimension(Value value) {
  return cast<RankedTensorType>(value.getType()).getShape().back();
}

/// Operations of attention: products of `keyProducts` times the size of a key
/// and `valueProducts` times that of a value for each pair of a query and a key
/// that it sees, `scores` more, `capped` with a soft cap; and `sunk` a row with
/// sinks. Of ops with key positions every second sees its
/// keys.
template <typename Op>
static double attentionFlops(Op op, double keyProducts, double valueProducts,
                             double scores, double capped, double sunk) {
  auto shape = cast<RankedTensorType>(op.getQuery().getType()).getShape();
  double heads = double(shape[0]) * double(shape[2]);
  double pair = 2 * keyProducts * double(shape[3]) +
                2 * valueProducts * double(lastDimension(op.getValue())) +
                scores + (op.getSoftCap() ? capped : 0);
  double rows = op.getSinks() ? heads * double(shape[1]) : 0;
  double pairs = op.getMask().pairs() * (op.getKeyPosition() ? 0.5 : 1.0);
  return heads * pairs * pair + rows * sunk;
}

/// q k^T and p v; a pair's scale, maximum, subtraction, exp and sum; the cap's
/// tanh and factor; a sink's subtraction, exp and sum.
Cost AttentionOp::getCost() {
  return streamingCost(*this, attentionFlops(*this, 1, 1, 5, 2, 3));
}

/// q k^T again, do v^T, p^T do, ds k, ds^T q; a pair's scale, subtraction, exp,
/// and p * (dp - delta) * scale; the cap's tanh, factor, square, subtraction
/// and product; a sink's subtraction, exp, product and sum.
Cost AttentionGradOp::getCost() {
  return streamingCost(*this, attentionFlops(*this, 3, 2, 6, 5, 4));
}

/// Reads the rows it copies, not the table.
Cost EmbeddingOp::getCost() {
  double rows = bytesOf(getResult());
  return {0, rows + bytesOf(getTokens()), rows};
}

Cost EmbeddingGradOp::getCost() {
  return streamingCost(*this, elementsOf(getCotangent()));
}

/// maximum, -, exp, +.
Cost CrossEntropyOp::getCost() {
  return streamingCost(*this, 4 * elementsOf(getLogits()));
}

/// maximum, -, exp, +.
Cost CrossEntropyShardOp::getCost() {
  return streamingCost(*this, 4 * elementsOf(getLogits()));
}

/// maximum, -, exp, +; the sum of logits: 5 a pair.
Cost CrossEntropyMergeOp::getCost() {
  return streamingCost(*this, 2.5 * elementsOf(getParts()));
}

/// - logsumexp, exp, *.
Cost CrossEntropyGradOp::getCost() {
  return streamingCost(*this, 3 * elementsOf(getLogits()));
}

/// maximum, -, exp, +; a comparison for each choice.
Cost RouteOp::getCost() {
  double k = double(lastDimension(getExperts()));
  return streamingCost(*this, (4 + k) * elementsOf(getLogits()));
}

/// Read by the host after the step.
Cost ObserveOp::getCost() { return {}; }

/// Filled before a step.
Cost ObservedMeanOp::getCost() { return {}; }

/// The softmax again; -, *.
Cost RouteGradOp::getCost() {
  return streamingCost(*this, 6 * elementsOf(getLogits()));
}

Cost ExpertPlacesOp::getCost() { return streamingCost(*this, 0); }

/// Elements of the rows that choices have: all choices have one, if there are
/// so many rows.
static double placedElements(Value places, Value rows) {
  return std::min(elementsOf(places) * double(lastDimension(rows)),
                  elementsOf(rows));
}

/// The bytes of all operands and results, but of `moved` elements of `operand`.
static Cost placedCost(Operation *op, double flops, double moved,
                       Value operand) {
  Cost cost = rota::streamingCost(op, flops);
  double elements = elementsOf(operand);
  cost.bytesRead += (moved - elements) * bytesOf(operand) / elements;
  return cost;
}

/// Reads a token for each choice; a product with its weight.
Cost DispatchOp::getCost() {
  double moved = placedElements(getPlaces(), getRows());
  return placedCost(*this, getWeights() ? moved : 0, moved, getTokens());
}

/// Reads the rows with a place alone; a product with the weight, a sum.
Cost CombineOp::getCost() {
  double moved = placedElements(getPlaces(), getRows());
  return placedCost(*this, (getWeights() ? 2 : 1) * moved, moved, getRows());
}

/// Reads the rows of the choices; a multiply-add an element.
Cost ChoiceDotOp::getCost() {
  double moved = placedElements(getPlaces(), getRows());
  return placedCost(*this, 2 * moved, moved, getRows());
}

/// A multiply-add per row that is expected to have an expert, and element of a
/// matrix.
Cost GroupedProductOp::getCost() {
  return streamingCost(*this, 2 * fillOf(getFill()) * elementsOf(getRows()) *
                                  double(lastDimension(getResult())));
}

Cost GroupedProductGradOp::getCost() {
  return streamingCost(*this, 2 * fillOf(getFill()) * elementsOf(getLhs()) *
                                  double(lastDimension(getRhs())));
}

Cost GroupedBiasOp::getCost() {
  return streamingCost(*this, elementsOf(getRows()));
}

Cost GroupedBiasGradOp::getCost() {
  return streamingCost(*this, elementsOf(getCotangent()));
}

Cost RaggedAllToAllOp::getCost() { return streamingCost(*this, 0); }
