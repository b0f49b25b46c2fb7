// SPDX-License-Identifier: Apache-2.0
//
// The copies that carry out `rota.split` and `rota.concat`, for emitters of
// every device.
#ifndef ROTA_LOWERING_KERNELS_TENSOR_SPLITPLAN_H
#define ROTA_LOWERING_KERNELS_TENSOR_SPLITPLAN_H

#include "lowering/kernels/KernelPlan.h"

namespace rota::lowering {

/// A tensor as rows, in each of which the elements of one part lie side by
/// side.
struct PartOfRows {
  int64_t rows;
  int64_t columns;      // elements of a row of the whole
  int64_t begin, width; // the part in the row
  mlir::Type element;
  bool isSplit; // the whole is read and the part written, or the reverse

  /// A text that determines the code of a row.
  std::string key() const;
};

/// A plan of one call for each part. `emit` returns the kernel of a part: its
/// arguments are the tensor that is read and the one that is written.
llvm::FailureOr<KernelPlan> planParts(
    mlir::Value whole, mlir::ValueRange parts, int64_t dim, bool isSplit,
    llvm::function_ref<llvm::FailureOr<std::string>(const PartOfRows &part)>
        emit);

} // namespace rota::lowering

#endif // ROTA_LOWERING_KERNELS_TENSOR_SPLITPLAN_H
