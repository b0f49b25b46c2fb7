// SPDX-License-Identifier: Apache-2.0
//
// The dimensions of values that are the length of activations.
#ifndef ROTA_PASSES_SHARD_PROPAGATION_LENGTHDIMENSIONS_H
#define ROTA_PASSES_SHARD_PROPAGATION_LENGTHDIMENSIONS_H

#include "ir/rota/Rota.h"

namespace mlir::rota {

/// The second dimension of the activations and of the data of a function, those
/// of residuals that are the length in the function that saves them, and every
/// dimension that has one factor with one of these in some op.
class LengthDimensions {
public:
  explicit LengthDimensions(func::FuncOp function);

  bool contains(Value value, unsigned dim) const {
    return dimensions.contains({value, dim});
  }

private:
  void startAtResiduals(func::FuncOp function);

  DenseSet<std::pair<Value, unsigned>> dimensions;
};

} // namespace mlir::rota

#endif // ROTA_PASSES_SHARD_PROPAGATION_LENGTHDIMENSIONS_H
