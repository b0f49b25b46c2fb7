// SPDX-License-Identifier: Apache-2.0
//
// The kernels of ServiceKernels.h that transfers launch, on the host: a test of
// the runtime has no compiler for the true ones.
#ifndef ROTA_TEST_RUNTIME_COLLECTIVE_TRANSFERKERNELS_H
#define ROTA_TEST_RUNTIME_COLLECTIVE_TRANSFERKERNELS_H

#include "runtime/Abi.h"

#include <span>
#include <vector>

namespace rota::test {

/// A kernel whose elements are independent of each other.
struct TransferKernel {
  const char *name;
  std::vector<int32_t> argumentBytes; // by argument
  int count;                          // number of the argument that is an i64
                                      // count of elements; -1: there is one
  /// Does element i. arguments[n] is the address of argument n.
  void (*element)(void *const *arguments, int64_t i);
  /// Does those of an emulated thread.
  void (*thread)(void *const *arguments);

  int64_t elements(void *const *arguments) const {
    return count < 0 ? 1 : *static_cast<const int64_t *>(arguments[count]);
  }
};

std::span<const TransferKernel> transferKernels();

/// All of them as code for the emulated GPU.
const RotaGpuCode &transferCode();

} // namespace rota::test

#endif // ROTA_TEST_RUNTIME_COLLECTIVE_TRANSFERKERNELS_H
