// SPDX-License-Identifier: Apache-2.0
//
// Checks of operands and results that the verifiers of tensor ops share. Each
// emits "expected X, got Y" at the op where it fails.
#ifndef ROTA_IR_ROTA_CHECKS_H
#define ROTA_IR_ROTA_CHECKS_H

#include "ir/rota/Rota.h"

namespace mlir::rota {

inline RankedTensorType tensorOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}

inline ArrayRef<int64_t> shapeOf(Value value) {
  return tensorOf(value).getShape();
}

inline Type elementOf(Value value) { return tensorOf(value).getElementType(); }

/// Reports that `what` should have `expected` as its shape.
inline LogicalResult checkShape(Operation *op, StringRef what, Value value,
                                ArrayRef<int64_t> expected) {
  if (shapeOf(value) == expected)
    return success();
  auto diagnostic = op->emitOpError("expected ") << what << " of shape [";
  llvm::interleaveComma(expected, diagnostic);
  return diagnostic << "], got " << value.getType();
}

inline LogicalResult checkType(Operation *op, StringRef what, Value value,
                               Type expected) {
  if (value.getType() == expected)
    return success();
  return op->emitOpError("expected ")
         << what << " of type " << expected << ", got " << value.getType();
}

inline LogicalResult checkElement(Operation *op, StringRef what, Value value,
                                  Type expected) {
  if (elementOf(value) == expected)
    return success();
  return op->emitOpError("expected ")
         << what << " with elements of type " << expected << ", got "
         << value.getType();
}

inline LogicalResult checkRank(Operation *op, StringRef what, Value value,
                               int64_t rank) {
  if (tensorOf(value).getRank() == rank)
    return success();
  return op->emitOpError("expected ")
         << what << " of rank " << rank << ", got " << value.getType();
}

/// Checks that `value`, where there is one, is a scalar.
inline LogicalResult checkOffset(Operation *op, Value offset) {
  return offset ? checkShape(op, "an offset", offset, {}) : success();
}

} // namespace mlir::rota

#endif // ROTA_IR_ROTA_CHECKS_H
