// SPDX-License-Identifier: Apache-2.0
//
// The emulated driver with a context, and work that tells in which order it
// ran.
#ifndef ROTA_TEST_RUNTIME_DEVICE_SIMT_EMULATEDGPU_H
#define ROTA_TEST_RUNTIME_DEVICE_SIMT_EMULATEDGPU_H

#include "runtime/device/simt/DriverResults.h"
#include "runtime/device/simt/EmulatedDriver.h"
#include "runtime/device/simt/Services.h"

#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace rota::test {

#define EXPECT_SUCCESS(call) EXPECT_EQ(call, rota::cuda::kSuccess)

/// The emulated GPU for a scope, current on this thread. Everything that it
/// hands out ends with it.
class EmulatedGpu {
public:
  explicit EmulatedGpu(const simt::EmulatedDriverOptions &options = {});
  ~EmulatedGpu();

  const cuda::DriverApi &api;
  cuda::ContextHandle context = nullptr;

  cuda::StreamHandle stream();
  cuda::EventHandle event(unsigned flags = cuda::kEventWithoutTiming);
  /// Zero at first.
  template <typename T> T *allocate(size_t count) {
    return static_cast<T *>(allocateBytes(count * sizeof(T)));
  }
  template <typename T> T *allocateHost(size_t count) {
    return static_cast<T *>(allocateHostBytes(count * sizeof(T)));
  }
  cuda::FunctionHandle function(const char *name);
  /// "" or the report of what failed, once the stream has done its work.
  std::string reportOf(cuda::StreamHandle stream);

  /// One block of one thread.
  cuda::Result launch(const char *kernel, std::vector<void *> arguments,
                      cuda::StreamHandle stream);
  /// Asks for work of the host that appends to the log.
  void append(int32_t value, cuda::StreamHandle stream);
  /// `later` waits for what `earlier` was asked for.
  void order(cuda::StreamHandle earlier, cuda::StreamHandle later);
  /// The appended texts, when the streams of stream() have done all.
  std::vector<int32_t> log();

private:
  void *allocateBytes(size_t bytes);
  void *allocateHostBytes(size_t bytes);

  cuda::ModuleHandle module = nullptr;
  std::vector<cuda::StreamHandle> streams;
  std::vector<int32_t> entries;
};

inline cuda::Address addressOf(const void *place) {
  return reinterpret_cast<cuda::Address>(place);
}

} // namespace rota::test

#endif // ROTA_TEST_RUNTIME_DEVICE_SIMT_EMULATEDGPU_H
