// SPDX-License-Identifier: Apache-2.0
//
// Grouped products as one call of the runtime each.
#ifndef ROTA_LOWERING_EXECUTABLE_GROUPEDGEMM_H
#define ROTA_LOWERING_EXECUTABLE_GROUPEDGEMM_H

#include "ir/rota/Rota.h"
#include "runtime/GroupedAbi.h"

#include <optional>

namespace rota::lowering {

/// A call of rotaGroupedGemm or, of a gradient, rotaGroupedGemmGrad.
/// `accumulate` is left 0.
struct GroupedGemmPlan {
  RotaGroupedGemm gemm{};
  bool isGradient = false;
};

/// The call that `rota.grouped_product` or its derivative is; none for another
/// op. Fails with an error at a derivative in bf16, whose sums over sequences
/// would be rounded.
llvm::FailureOr<std::optional<GroupedGemmPlan>>
planGroupedGemm(mlir::Operation *op);

} // namespace rota::lowering

#endif // ROTA_LOWERING_EXECUTABLE_GROUPEDGEMM_H
