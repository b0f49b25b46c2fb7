// SPDX-License-Identifier: Apache-2.0
//
// The kernels that the runtime launches by itself, compiled for the emulator,
// and memory for them.
#ifndef ROTA_TEST_LOWERING_GPU_SERVICEKERNELSFIXTURE_H
#define ROTA_TEST_LOWERING_GPU_SERVICEKERNELSFIXTURE_H

#include "runtime/device/cuda/ServiceKernels.h"
#include "runtime/device/simt/Simt.h"
#include "test/lowering/simt/EmulatedKernels.h"

#include <gtest/gtest.h>
#include <limits>
#include <random>

namespace rota::test {

inline constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// Elements of `T`, the first of them `shift` elements behind a multiple of 64
/// bytes.
template <typename T> class Elements {
public:
  explicit Elements(int64_t count, int64_t shift = 0)
      : shift(shift), count(count),
        lines((count + shift) * sizeof(T) / 64 + 1) {}
  T *data() { return reinterpret_cast<T *>(lines.data()) + shift; }
  const T *data() const {
    return reinterpret_cast<const T *>(lines.data()) + shift;
  }
  T &operator[](int64_t i) { return data()[i]; }
  const T &operator[](int64_t i) const { return data()[i]; }
  int64_t size() const { return count; }

private:
  struct alignas(64) Line {
    char bytes[64];
  };
  int64_t shift, count;
  std::vector<Line> lines;
};

/// Rows of elements of which `count` are used.
struct Rows {
  int64_t length, stride;
  int64_t at(int64_t i) const { return i / length * stride + i % length; }
  int64_t extent(int64_t count) const { return at(count - 1) + 1; }
};

class ServiceKernels : public testing::Test {
protected:
  ServiceKernels() : gpu(GpuKernels::services()) {}

  void SetUp() override {
    ASSERT_TRUE(*gpu) << gpu->takeDiagnostics();
    kernels = gpu->compile();
    ASSERT_TRUE(kernels) << gpu->takeDiagnostics();
  }

  template <typename T> void know(const char *name, const Elements<T> &bytes) {
    emulator.addBuffer(name, bytes.data(), bytes.size() * sizeof(T));
  }

  /// Launches a kernel on the buffers that are known, and forgets them.
  template <typename... Arguments>
  std::vector<std::string> run(const char *name, unsigned blocks,
                               Arguments... arguments) {
    void *addresses[] = {&arguments...};
    simt::Launch launch;
    launch.grid = {blocks};
    launch.block = {cuda::kServiceThreads};
    launch.arguments = addresses;
    launch.seed = blocks;
    auto reports = emulator.launch(*kernels->find(name), launch);
    emulator.clearBuffers();
    return reports;
  }

  template <typename... Arguments>
  void expectRun(const char *name, unsigned blocks, Arguments... arguments) {
    for (const std::string &report : run(name, blocks, arguments...))
      ADD_FAILURE() << report;
  }

  float number() {
    return std::uniform_real_distribution<float>(-2, 2)(engine);
  }

  std::unique_ptr<GpuKernels> gpu;
  std::unique_ptr<EmulatedKernels> kernels;
  simt::Emulator emulator;
  std::mt19937 engine{5};
};

} // namespace rota::test

#endif // ROTA_TEST_LOWERING_GPU_SERVICEKERNELSFIXTURE_H
