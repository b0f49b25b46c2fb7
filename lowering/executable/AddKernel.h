// SPDX-License-Identifier: Apache-2.0
//
// The kernel that adds a value to a gradient, for values whose own op cannot.
#ifndef ROTA_LOWERING_EXECUTABLE_ADDKERNEL_H
#define ROTA_LOWERING_EXECUTABLE_ADDKERNEL_H

#include "lowering/kernels/KernelPlan.h"

namespace rota::lowering {

/// Plans `result 0 += operand 0` for f32 tensors of this type.
llvm::FailureOr<KernelPlan> planAdd(mlir::RankedTensorType type,
                                    KernelLibrary &library);

} // namespace rota::lowering

#endif // ROTA_LOWERING_EXECUTABLE_ADDKERNEL_H
