// SPDX-License-Identifier: Apache-2.0
//
// Buffers of a kernel under test, read as doubles, and comparison with the
// results of a plain loop.
#ifndef ROTA_TEST_LOWERING_KERNELS_KERNELTESTING_H
#define ROTA_TEST_LOWERING_KERNELS_KERNELTESTING_H

#include "llvm/ADT/StringMap.h"
#include "llvm/TargetParser/Host.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <gtest/gtest.h>
#include <random>
#include <string>
#include <vector>

namespace rota::testing {

/// Elements of "f32", "bf16" or "i32", and guards behind them.
class Buffer {
public:
  Buffer(std::string type, int64_t size)
      : type(type), size(size), width(type == "bf16" ? 2 : 4),
        bytes(size * width + kGuard, char(0x55)) {}

  /// Uniform values in [low, high).
  static Buffer random(std::string type, int64_t size, unsigned seed,
                       float low = -1.0f, float high = 1.0f) {
    Buffer buffer(type, size);
    std::mt19937 engine(seed);
    std::uniform_real_distribution<float> uniform(low, high);
    for (int64_t i = 0; i < size; ++i)
      buffer.set(i, uniform(engine));
    return buffer;
  }

  double operator[](int64_t i) const {
    uint32_t bits = 0;
    std::memcpy(&bits, &bytes[i * width], width);
    if (type == "i32")
      return int32_t(bits);
    return std::bit_cast<float>(type == "bf16" ? bits << 16 : bits);
  }
  /// bf16 is truncated: any value that the type can hold will do.
  void set(int64_t i, double value) {
    uint32_t bits = type == "i32" ? uint32_t(int32_t(value))
                                  : std::bit_cast<uint32_t>(float(value));
    if (type == "bf16")
      bits >>= 16;
    std::memcpy(&bytes[i * width], &bits, width);
  }
  std::vector<double> numbers() const {
    std::vector<double> all(size);
    for (int64_t i = 0; i < size; ++i)
      all[i] = (*this)[i];
    return all;
  }
  void *data() { return bytes.data(); }
  const std::vector<char> &raw() const { return bytes; }
  int64_t dataBytes() const { return size * width; } // without the guards

  /// Each element within `tolerance` of the larger of 1 and `expected`, plus
  /// one rounding of the type; nothing written behind the end.
  void expectNear(const std::vector<double> &expected, double tolerance,
                  const std::string &what) const {
    ASSERT_EQ(int64_t(expected.size()), size) << what;
    double rounding = type == "bf16" ? 0x1p-8 : 0.0;
    for (int64_t i = 0; i < size; ++i)
      ASSERT_NEAR((*this)[i], expected[i],
                  tolerance * std::max(1.0, std::abs(expected[i])) +
                      rounding * std::abs(expected[i]))
          << what << " at " << i << " of " << size;
    for (int64_t i = size * width; i < int64_t(bytes.size()); ++i)
      ASSERT_EQ(bytes[i], char(0x55)) << what << " is written behind its end";
  }

private:
  static constexpr int64_t kGuard = 64;

  std::string type;
  int64_t size, width;
  std::vector<char> bytes;
};

/// The processors whose kernels differ: this one, and one with each narrower
/// vector.
inline std::vector<const char *> processors() {
  std::vector<const char *> names = {"native"};
  llvm::StringMap<bool> features = llvm::sys::getHostCPUFeatures();
  if (features.lookup("avx512f"))
    names.push_back("x86-64-v3");
  if (features.lookup("avx"))
    names.push_back("x86-64-v2");
  return names;
}

/// "tensor<2x3xf32>".
inline std::string tensor(std::vector<int64_t> shape, const std::string &type) {
  std::string text = "tensor<";
  for (int64_t size : shape)
    text += std::to_string(size) + "x";
  return text + type + ">";
}

} // namespace rota::testing

#endif // ROTA_TEST_LOWERING_KERNELS_KERNELTESTING_H
