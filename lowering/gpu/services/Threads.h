// SPDX-License-Identifier: Apache-2.0
//
// Threads and memory of GPUs, for the kernels of this folder. It is compiled
// for NVPTX alone, without any library.
#ifndef ROTA_LOWERING_GPU_SERVICES_THREADS_H
#define ROTA_LOWERING_GPU_SERVICES_THREADS_H

#include "runtime/device/cuda/ServiceKernels.h"

#define ROTA_KERNEL extern "C" __attribute__((device_kernel)) void
#define ROTA_GLOBAL __attribute__((address_space(1)))
#define ROTA_SHARED __attribute__((address_space(3)))

namespace rota::services {

constexpr int64_t kThreads = cuda::kServiceThreads; // of a block

inline int64_t threadOfBlock() { return __nvvm_read_ptx_sreg_tid_x(); }
inline int64_t blockOfGrid() { return __nvvm_read_ptx_sreg_ctaid_x(); }
inline int64_t blocksOfGrid() { return __nvvm_read_ptx_sreg_nctaid_x(); }
inline int64_t threadOfGrid() {
  return blockOfGrid() * kThreads + threadOfBlock();
}
inline int64_t threadsOfGrid() { return blocksOfGrid() * kThreads; }

} // namespace rota::services

#endif // ROTA_LOWERING_GPU_SERVICES_THREADS_H
