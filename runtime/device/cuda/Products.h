// SPDX-License-Identifier: Apache-2.0
//
// Products of matrices on a GPU.
#ifndef ROTA_RUNTIME_DEVICE_CUDA_PRODUCTS_H
#define ROTA_RUNTIME_DEVICE_CUDA_PRODUCTS_H

#include "runtime/Abi.h"
#include "runtime/device/cuda/DriverApi.h"

#include <cstdint>

namespace rota::cuda {

/// Matrix products of one rank, called from its thread.
class Products {
public:
  virtual ~Products() = default;
  /// Asks `stream` for the product that rotaGemm describes. `workspace` is
  /// device memory of `workspaceBytes`, which products of one stream use in
  /// turn. Throws RunError.
  virtual void multiply(const RotaGemm &gemm, const void *a, const void *b,
                        void *c, void *workspace, int64_t workspaceBytes,
                        StreamHandle stream) = 0;
  /// Makes ready what that call will need. Memory at all operands is zero, and
  /// stays so. Throws InputError where a library is missing.
  virtual void prepare(const RotaGemm &gemm, const void *a, const void *b,
                       void *c, void *workspace, int64_t workspaceBytes,
                       StreamHandle stream) {}
};

} // namespace rota::cuda

#endif // ROTA_RUNTIME_DEVICE_CUDA_PRODUCTS_H
