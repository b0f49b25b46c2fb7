// SPDX-License-Identifier: Apache-2.0
//
// A driver without a GPU, for tests of communicators: streams are queues, and
// nothing runs before somebody waits for it. Then operations of all streams run
// in a random order that events allow, so that a missing wait gives wrong
// numbers. Memory is the host's; kernels are those of ServiceKernels.h that
// transfers need.
#ifndef ROTA_TEST_RUNTIME_COLLECTIVE_GPU_FAKEDRIVER_H
#define ROTA_TEST_RUNTIME_COLLECTIVE_GPU_FAKEDRIVER_H

#include "runtime/device/cuda/DriverApi.h"

namespace rota::test {

/// The order of operations follows from the seed.
const cuda::DriverApi &fakeDriver(uint64_t seed);

/// Operations that streams were asked for and that have not run.
int64_t pendingOperations();

/// Makes launches fail with kLaunchFailed, or work again.
void failLaunches(bool fail);

} // namespace rota::test

#endif // ROTA_TEST_RUNTIME_COLLECTIVE_GPU_FAKEDRIVER_H
