// SPDX-License-Identifier: Apache-2.0
//
// Products of matrices on the emulated GPU: those of the CPU.
#ifndef ROTA_RUNTIME_DEVICE_SIMT_EMULATEDPRODUCTS_H
#define ROTA_RUNTIME_DEVICE_SIMT_EMULATEDPRODUCTS_H

#include "runtime/device/cuda/Products.h"

namespace rota::simt {

/// Same bits as multiplyOnCpu (runtime/device/cpu/Gemm.h). A wrong description
/// fails the GPU when the product runs.
class EmulatedProducts : public cuda::Products {
public:
  void multiply(const RotaGemm &gemm, const void *a, const void *b, void *c,
                void *workspace, int64_t workspaceBytes,
                cuda::StreamHandle stream) override;
};

} // namespace rota::simt

#endif // ROTA_RUNTIME_DEVICE_SIMT_EMULATEDPRODUCTS_H
