// SPDX-License-Identifier: Apache-2.0
//
// The parts on one rank of ops that are not themselves on parts of their
// operands: those that number the entries of a vocabulary, and a maximum.
#include "ir/rota/sharding/Sharding.h"

using namespace mlir;
using namespace mlir::rota;

using Axes = SmallVector<AxisRefAttr, 2>;
using Parts = FailureOr<SmallVector<Value>>;

static ArrayAttr axesAttr(OpBuilder &builder, ArrayRef<AxisRefAttr> axes) {
  return builder.getArrayAttr(SmallVector<Attribute>(axes.begin(), axes.end()));
}

/// The axes of the vocabulary's factor.
static ArrayRef<AxisRefAttr> vocabularyAxes(FactorRuleOpInterface op,
                                            ArrayRef<Axes> factors) {
  return factors[op.getFactorRule().numbered.front()];
}

/// The vocabulary's entry that is the first of this rank's `entries`.
static Value offset(OpBuilder &builder, Location loc,
                    ArrayRef<AxisRefAttr> axes, int64_t entries) {
  auto type = RankedTensorType::get({}, builder.getI32Type());
  return ShardOffsetOp::create(builder, loc, type, axesAttr(builder, axes),
                               entries);
}

/// The size of the whole vocabulary where parts of `entries` are more; null
/// where they are all of it.
static IntegerAttr paddedVocabulary(FactorRuleOpInterface op,
                                    ArrayRef<int64_t> sizes,
                                    ArrayRef<AxisRefAttr> axes,
                                    int64_t entries) {
  int64_t whole = sizes[op.getFactorRule().numbered.front()];
  if (meshOf(op).getSize(axes) * entries == whole)
    return {};
  return Builder(op.getContext()).getI64IntegerAttr(whole);
}

static int64_t sizeOf(Value value, unsigned dim) {
  return cast<RankedTensorType>(value.getType()).getDimSize(dim);
}

Parts EmbeddingOp::buildPart(OpBuilder &builder, ArrayRef<Axes> factors,
                             ArrayRef<int64_t> sizes, TypeRange types) {
  ArrayRef<AxisRefAttr> axes = vocabularyAxes(*this, factors);
  if (axes.empty())
    return SmallVector<Value>();
  Value first = offset(builder, getLoc(), axes, sizeOf(getTable(), 0));
  return SmallVector<Value>{
      create(builder, getLoc(), types[0], getTokens(), getTable(), first,
             paddedVocabulary(*this, sizes, axes, sizeOf(getTable(), 0)))};
}

Parts EmbeddingGradOp::buildPart(OpBuilder &builder, ArrayRef<Axes> factors,
                                 ArrayRef<int64_t>, TypeRange types) {
  ArrayRef<AxisRefAttr> axes = vocabularyAxes(*this, factors);
  if (axes.empty())
    return SmallVector<Value>();
  Value first = offset(builder, getLoc(), axes,
                       cast<RankedTensorType>(types[0]).getDimSize(0));
  return SmallVector<Value>{
      create(builder, getLoc(), types[0], getTokens(), getCotangent(), first)};
}

/// Each rank's logsumexp and target logit, gathered and merged.
Parts CrossEntropyOp::buildPart(OpBuilder &builder, ArrayRef<Axes> factors,
                                ArrayRef<int64_t> sizes, TypeRange types) {
  ArrayRef<AxisRefAttr> axes = vocabularyAxes(*this, factors);
  if (axes.empty())
    return SmallVector<Value>();
  Value first = offset(builder, getLoc(), axes, sizeOf(getLogits(), 2));
  Type element = getElementTypeOrSelf(types[0]);
  SmallVector<int64_t> shape{sizeOf(getLogits(), 0), sizeOf(getLogits(), 1), 2};
  Value part = CrossEntropyShardOp::create(
      builder, getLoc(), RankedTensorType::get(shape, element), getLogits(),
      getTargets(), first,
      paddedVocabulary(*this, sizes, axes, sizeOf(getLogits(), 2)));
  shape.back() *= meshOf(*this).getSize(axes);
  Value parts = AllGatherOp::create(
      builder, getLoc(), RankedTensorType::get(shape, element), part,
      builder.getI64IntegerAttr(2), axesAttr(builder, axes),
      builder.getStringAttr("cross-entropy over parts of the vocabulary"));
  auto merged = CrossEntropyMergeOp::create(builder, getLoc(), types, parts,
                                            getTargets());
  return SmallVector<Value>(merged.getResults());
}

Parts CrossEntropyGradOp::buildPart(OpBuilder &builder, ArrayRef<Axes> factors,
                                    ArrayRef<int64_t> sizes, TypeRange types) {
  ArrayRef<AxisRefAttr> axes = vocabularyAxes(*this, factors);
  if (axes.empty())
    return SmallVector<Value>();
  Value first = offset(builder, getLoc(), axes, sizeOf(getLogits(), 2));
  return SmallVector<Value>{
      create(builder, getLoc(), types[0], getCotangent(), getLogits(),
             getTargets(), getLogsumexp(), first,
             paddedVocabulary(*this, sizes, axes, sizeOf(getLogits(), 2)),
             getRowCotangent())};
}

/// A maximum of parts is the maximum of their maxima.
Parts ReduceOp::buildPart(OpBuilder &builder, ArrayRef<Axes> factors,
                          ArrayRef<int64_t>, TypeRange types) {
  Axes axes;
  for (int64_t factor : getFactorRule().combined)
    llvm::append_range(axes, factors[factor]);
  if (axes.empty())
    return SmallVector<Value>();
  Value part =
      create(builder, getLoc(), types[0], getKind(), getInput(), getDims());
  return SmallVector<Value>{AllReduceOp::create(
      builder, getLoc(), types[0], getKind(), part, axesAttr(builder, axes),
      builder.getStringAttr("maximum of parts"))};
}
