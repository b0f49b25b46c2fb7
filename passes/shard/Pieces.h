// SPDX-License-Identifier: Apache-2.0
//
// Tensors of a collective and of its product in pieces.
#ifndef ROTA_PASSES_SHARD_PIECES_H
#define ROTA_PASSES_SHARD_PIECES_H

#include "ir/rota/cost/Machine.h"
#include "ir/rota/cost/Traffic.h"

namespace mlir::rota {

/// The largest number of pieces.
inline constexpr int64_t kMostPieces = 8;

/// A dimension of a tensor of which each piece takes a stretch: one of the
/// whole dimension, or one of the part of each of `ranks` ranks.
struct Cut {
  int64_t dim;
  int64_t ranks = 1;

  /// Bytes that are copied to cut the value into pieces or to join them: none
  /// where pieces are stretches of its elements.
  int64_t copiedBytes(Value value) const;
  /// The type of a piece.
  RankedTensorType pieceOf(Value value, int64_t pieces) const;
};

/// Cuts `value` at the builder.
SmallVector<Value> cutPieces(OpBuilder &builder, Value value, Cut cut,
                             int64_t pieces);
/// The value of that type of which `pieces` are the pieces.
Value joinPieces(OpBuilder &builder, Type type, Cut cut,
                 ArrayRef<Value> pieces);
/// A copy of an op with one result, of which operand `operand` is a piece, and
/// the result, too.
Value pieceOfOp(OpBuilder &builder, Operation *op, unsigned operand,
                Value piece, Cut result, int64_t pieces);

/// Seconds in which a rank waits for a transfer beside a product.
struct PieceTimes {
  double whole = 0, pieces = 0;

  double saved() const { return whole - pieces; }
};

/// The times of a transfer, whole, and in pieces: all but one travel beside a
/// part of the product. More pieces are more transfers and products to start,
/// and `copied` bytes.
PieceTimes timesOfPieces(const Machine &machine, const Traffic &traffic,
                         Operation *product, int64_t copied, int64_t pieces);

} // namespace mlir::rota

#endif // ROTA_PASSES_SHARD_PIECES_H
