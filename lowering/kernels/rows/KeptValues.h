// SPDX-License-Identifier: Apache-2.0
#ifndef ROTA_LOWERING_KERNELS_ROWS_KEPTVALUES_H
#define ROTA_LOWERING_KERNELS_ROWS_KEPTVALUES_H

#include "lowering/kernels/rows/RowBody.h"

namespace rota::lowering {

/// A value of the columns that a kernel stores on the stack when it first
/// computes it, and that later passes load.
struct KeptValue {
  mlir::Value value; // f32 or bf16
  int pass = 0;      // the first that computes it
};

/// The values that later passes would need longer to compute again, from the
/// operands, than to load.
llvm::SmallVector<KeptValue> keptValues(const RowBody &body);

} // namespace rota::lowering

#endif // ROTA_LOWERING_KERNELS_ROWS_KEPTVALUES_H
