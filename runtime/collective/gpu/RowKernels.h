// SPDX-License-Identifier: Apache-2.0
//
// Rows of elements (Blocks.h) as the runtime's GPU kernels take them.
#ifndef ROTA_RUNTIME_COLLECTIVE_GPU_ROWKERNELS_H
#define ROTA_RUNTIME_COLLECTIVE_GPU_ROWKERNELS_H

#include "runtime/collective/Blocks.h"
#include "runtime/device/cuda/CudaDevice.h"
#include "runtime/device/cuda/ServiceKernels.h"

namespace rota {

/// Asks `stream` to copy the elements of the block, of 2 or 4 bytes, between
/// the buffers. Throws RunError.
void copyRows(cuda::CudaDevice &device, const TransferBlock &block,
              int64_t elementBytes, const void *source, void *destination,
              cuda::StreamHandle stream);

/// The arithmetic of a collective that reduces.
cuda::CombineMode combineModeOf(const Collective &collective);

} // namespace rota

#endif // ROTA_RUNTIME_COLLECTIVE_GPU_ROWKERNELS_H
