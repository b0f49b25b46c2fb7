// SPDX-License-Identifier: Apache-2.0
//
// An einsum as one call of the runtime's matrix product.
#ifndef ROTA_LOWERING_EXECUTABLE_GEMM_H
#define ROTA_LOWERING_EXECUTABLE_GEMM_H

#include "ir/rota/Rota.h"
#include "runtime/Abi.h"

namespace rota::lowering {

/// The matrix product that an einsum is. With `swapped`, A is the einsum's
/// right operand. `accumulate` is left 0.
struct GemmPlan {
  RotaGemm gemm{};
  bool swapped = false;
};

/// Maps the letters of `einsum` to batch, m, n and k. A group of letters must
/// have one distance between its elements in each tensor (neighbours merge), m
/// or n must be contiguous in the result, and one of the two dimensions of each
/// operand must be contiguous. Otherwise an error at the op that names its
/// equation.
llvm::FailureOr<GemmPlan> planGemm(mlir::rota::EinsumOp einsum);

} // namespace rota::lowering

#endif // ROTA_LOWERING_EXECUTABLE_GEMM_H
