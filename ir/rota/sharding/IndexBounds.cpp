// SPDX-License-Identifier: Apache-2.0
//
// The numbers that embedding and cross-entropy may index with.
#include "ir/rota/sharding/Sharding.h"

using namespace mlir;
using namespace mlir::rota;

/// Entries of a vocabulary of which `entries` are in the part from `offset` on;
/// none where nothing says how many parts there are.
static std::optional<int64_t> boundOf(Operation *op, int64_t entries,
                                      Value offset,
                                      std::optional<uint64_t> vocabulary) {
  if (!offset)
    return entries;
  if (vocabulary)
    return int64_t(*vocabulary);
  auto first = offset.getDefiningOp<ShardOffsetOp>();
  if (!first)
    return std::nullopt;
  auto axes = llvm::to_vector(first.getAxes().getAsRange<AxisRefAttr>());
  return entries * meshOf(op).getSize(axes);
}

static int64_t sizeOf(Value value, unsigned dim) {
  return cast<RankedTensorType>(value.getType()).getDimSize(dim);
}

Value EmbeddingOp::getIndices() { return getTokens(); }
std::optional<int64_t> EmbeddingOp::getIndexBound() {
  return boundOf(*this, sizeOf(getTable(), 0), getOffset(), getVocabulary());
}

Value CrossEntropyOp::getIndices() { return getTargets(); }
std::optional<int64_t> CrossEntropyOp::getIndexBound() {
  return sizeOf(getLogits(), 2);
}
bool CrossEntropyOp::allowsNegativeIndices() { return true; }

Value CrossEntropyShardOp::getIndices() { return getTargets(); }
std::optional<int64_t> CrossEntropyShardOp::getIndexBound() {
  return boundOf(*this, sizeOf(getLogits(), 2), getOffset(), getVocabulary());
}
bool CrossEntropyShardOp::allowsNegativeIndices() { return true; }
