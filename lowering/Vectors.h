// SPDX-License-Identifier: Apache-2.0
//
// What passes on the code of kernels rely on.
#ifndef ROTA_LOWERING_VECTORS_H
#define ROTA_LOWERING_VECTORS_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

namespace rota::lowering {

/// Fails, with an error at the op, where arithmetic within `root` is on
/// tensors: that of kernels is on scalars and vectors.
inline llvm::LogicalResult verifyVectors(mlir::Operation *root) {
  auto result = root->walk([](mlir::Operation *op) {
    if (!llvm::isa_and_present<mlir::arith::ArithDialect,
                               mlir::math::MathDialect>(op->getDialect()))
      return mlir::WalkResult::advance();
    for (mlir::Type type : op->getResultTypes())
      if (llvm::isa<mlir::TensorType>(type)) {
        op->emitOpError("expected a scalar or a vector, got ") << type;
        return mlir::WalkResult::interrupt();
      }
    return mlir::WalkResult::advance();
  });
  return llvm::failure(result.wasInterrupted());
}

} // namespace rota::lowering

#endif // ROTA_LOWERING_VECTORS_H
