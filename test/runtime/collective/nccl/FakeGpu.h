// SPDX-License-Identifier: Apache-2.0
//
// Several GPUs whose work the host does, for a fake NCCL. The emulated GPU of
// runtime/device/simt is one GPU, and cannot record a call of the host that
// waits for other ranks; a call of NCCL is one, and each rank has a GPU.
//
// Streams are queues that advance while any thread asks for the state of one,
// and device memory is the host's. Work may be late by as much as CUDA allows:
// nothing runs before somebody waits. Streams can capture graphs, which must be
// joined; an event of a capture cannot be asked for.
#ifndef ROTA_TEST_RUNTIME_COLLECTIVE_NCCL_FAKEGPU_H
#define ROTA_TEST_RUNTIME_COLLECTIVE_NCCL_FAKEGPU_H

#include "runtime/device/cuda/CudaDevice.h"

#include <condition_variable>
#include <functional>
#include <mutex>

namespace rota::test {

/// The driver of the fake GPUs, of which a machine has sixteen.
const cuda::DriverApi &fakeDriver();

/// A rank's device on the fake GPU of that number.
std::unique_ptr<cuda::CudaDevice> fakeDevice(int ordinal);

/// The number of the calling thread's fake GPU.
int fakeOrdinal();

/// Guards all streams. Notified when work was asked for or has ended.
std::mutex &fakeMutex();
std::condition_variable &fakeChange();
/// Whether a graph records what the stream is asked for.
bool fakeCaptures(cuda::StreamHandle stream);
/// Appends work to a stream, or to the graph that the stream captures; it is
/// done when a call returns true. The caller holds the mutex.
void fakeAsk(cuda::StreamHandle stream, std::function<bool()> work);
/// Runs all that can run now. The caller holds the mutex.
void fakePump();

} // namespace rota::test

#endif // ROTA_TEST_RUNTIME_COLLECTIVE_NCCL_FAKEGPU_H
