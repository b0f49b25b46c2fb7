// SPDX-License-Identifier: Apache-2.0
//
// In the program for NVIDIA's GPUs in place of the runtime's products on the
// host, so that it runs where oneDNN is not installed.
#include "runtime/Abi.h"

#include <cstdlib>

extern "C" void rotaHostGemm(RotaContext *, const RotaGemm *, const void *,
                             const void *, void *) {
  std::abort(); // products are those of the GPU
}
