// SPDX-License-Identifier: Apache-2.0
//
// Every function of NVIDIA's driver and of cuBLASLt that a trainer looks for,
// with success as its answer. The other files have the functions that do more.
#include "runtime/device/cuda/BlasLtApi.h"

namespace rota::cuda {

#define X(member, symbol, parameters)                                          \
  extern "C" Result driver_##member parameters __asm__(symbol);                \
  extern "C" __attribute__((weak)) Result driver_##member parameters {         \
    return kSuccess;                                                           \
  }
ROTA_CUDA_DRIVER_FUNCTIONS(X)
#undef X

#define X(type, member, symbol, parameters)                                    \
  extern "C" type blasLt_##member parameters __asm__(#symbol);                 \
  extern "C" __attribute__((weak)) type blasLt_##member parameters {           \
    return {};                                                                 \
  }
ROTA_BLASLT_FUNCTIONS(X)
#undef X

} // namespace rota::cuda
