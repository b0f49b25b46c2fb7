// SPDX-License-Identifier: Apache-2.0
//
// Tests that GPU kernels on the emulator give what CPU kernels give, with the
// same bits in any order of threads and in place, and need each of their
// barriers.
#ifndef ROTA_TEST_LOWERING_GPU_AGAINSTCPU_H
#define ROTA_TEST_LOWERING_GPU_AGAINSTCPU_H

#include "test/lowering/gpu/EmulatedOp.h"
#include "tools/bench/CompiledOp.h"

#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <numeric>
#include <random>

namespace rota::test {

using bench::CompiledOp;

using Names = std::vector<std::pair<std::string, std::string>>;

/// `text` with names replaced: "$C" by "768".
inline std::string replaced(std::string text, const Names &names) {
  for (auto &[name, value] : names)
    for (size_t at; (at = text.find(name)) != std::string::npos;)
      text.replace(at, name.size(), value);
  return text;
}

inline std::string number(int64_t value) { return std::to_string(value); }

/// One op, the ranges of its operands and what may lie on what.
struct Trial {
  std::string source;
  std::vector<bool> accumulate = {};
  double high = 2;                               // floats are from -high on
  int64_t least = 0, end = 1;                    // range of integers
  std::vector<std::pair<int, int>> inPlace = {}; // operand, result
  double tolerance = 1e-5;
  bool leaveOutBarriers = false;
  bool distinct = false; // integers are `least`, `least` + 1, ... in any order
  double mostMoved = 0;  // bytes that launches access by those planned; 0: any
};

inline constexpr int64_t kOffset = 5; // offset of a part of a vocabulary

class AgainstCpu : public testing::Test {
protected:
  void check(const Trial &trial) {
    SCOPED_TRACE(trial.source);
    gpu = EmulatedOp::create(trial.source, trial.accumulate);
    auto cpu = CompiledOp::create(trial.source, trial.accumulate);
    ASSERT_TRUE(gpu && cpu);
    fillBuffers(trial);
    auto expected = initial;
    std::vector<void *> pointers;
    for (char *pointer : all(operands, expected))
      pointers.push_back(pointer);
    cpu->runInPieces(/*rows=*/1 << 20, pointers);
    auto got = run(std::nullopt);
    if (trial.mostMoved > 0)
      expectMoved(trial.mostMoved);
    for (size_t i = 0; i < got.size(); ++i)
      expectNear(got[i], expected[i], trial.tolerance);
    auto inAnyOrder = run(/*seed=*/11);
    for (size_t i = 0; i < got.size(); ++i)
      EXPECT_EQ(
          std::memcmp(got[i].data(), inAnyOrder[i].data(), got[i].bytes()), 0)
          << "result " << i << " depends on the order of threads";
    if (!trial.inPlace.empty())
      runInPlace(trial, got);
    if (trial.leaveOutBarriers)
      leaveOutBarriers();
  }

private:
  static std::vector<char *> all(std::vector<TensorBytes> &operands,
                                 std::vector<TensorBytes> &results) {
    std::vector<char *> pointers;
    for (TensorBytes &bytes : operands)
      pointers.push_back(bytes.data());
    for (TensorBytes &bytes : results)
      pointers.push_back(bytes.data());
    return pointers;
  }

  void fillBuffers(const Trial &trial) {
    std::mt19937 engine(7);
    std::uniform_real_distribution<double> real(-trial.high, trial.high);
    std::uniform_int_distribution<int64_t> integer(trial.least, trial.end - 1);
    auto fill = [&](TensorBytes &bytes) {
      bool isOffset = bytes.type == "i32" && bytes.count == 1;
      if (trial.distinct && bytes.type == "i32" && !isOffset)
        return fillDistinct(bytes, trial.least, engine);
      for (int64_t i = 0; i < bytes.count; ++i)
        if (!bytes.isGap(i))
          bytes.set(i, isOffset              ? double(kOffset)
                       : bytes.type == "i32" ? double(integer(engine))
                                             : real(engine));
    };
    operands = gpu->makeOperands();
    initial = gpu->makeResults();
    llvm::for_each(operands, fill);
    for (auto [bytes, adds] : llvm::zip(initial, trial.accumulate))
      if (adds)
        fill(bytes);
  }

  static void fillDistinct(TensorBytes &bytes, int64_t least,
                           std::mt19937 &engine) {
    std::vector<int64_t> numbers(bytes.count);
    std::iota(numbers.begin(), numbers.end(), least);
    std::shuffle(numbers.begin(), numbers.end(), engine);
    for (int64_t i = 0; i < bytes.count; ++i)
      bytes.set(i, double(numbers[i]));
  }

  std::vector<TensorBytes> run(std::optional<uint64_t> seed) {
    auto results = initial;
    for (const std::string &report : gpu->run(all(operands, results), seed))
      ADD_FAILURE() << report;
    return results;
  }

  void expectMoved(double most) {
    for (const EmulatedOp::Moved &launch : gpu->moved()) {
      auto bytes = static_cast<double>(launch.moved.sum());
      RecordProperty(launch.kernel,
                     number(std::lround(100 * bytes / launch.planned)));
      EXPECT_LE(bytes, most * launch.planned)
          << launch.kernel << " reads " << launch.moved.read
          << " bytes and writes " << launch.moved.written;
    }
  }

  static void expectNear(const TensorBytes &got, const TensorBytes &expected,
                         double tolerance) {
    double rounding =
        got.type == "bf16" ? 0x1p-7 : 0.0; // half a unit in the last place
    for (int64_t i = 0; i < got.count; ++i) {
      double a = got[i], b = expected[i];
      if (got.isGap(i)) {
        ASSERT_TRUE(std::isnan(a)) << "between rows, at " << i << ": " << a;
        continue;
      }
      ASSERT_LE(std::abs(a - b),
                tolerance * std::max(1.0, std::abs(b)) + rounding * std::abs(b))
          << "at " << i << " of " << got.count << ": " << a << ", not " << b;
    }
  }

  void runInPlace(const Trial &trial, const std::vector<TensorBytes> &got) {
    auto mine = operands;
    auto results = initial;
    auto pointers = all(mine, results);
    for (auto [operand, result] : trial.inPlace)
      pointers[operands.size() + result] = pointers[operand];
    for (const std::string &report : gpu->run(pointers, /*seed=*/5))
      ADD_FAILURE() << report;
    for (auto [operand, result] : trial.inPlace)
      EXPECT_EQ(std::memcmp(mine[operand].data(), got[result].data(),
                            got[result].bytes()),
                0)
          << "result " << result << " has other bits in place";
  }

  void leaveOutBarriers() {
    constexpr auto kind = lowering::GpuSynchronization::Barrier;
    for (unsigned i = 0; i < gpu->count(kind); ++i) {
      gpu->leaveOut({kind, i});
      auto results = initial;
      EXPECT_FALSE(gpu->run(all(operands, results)).empty())
          << "barrier " << i << " is not needed";
    }
  }

  std::unique_ptr<EmulatedOp> gpu;
  std::vector<TensorBytes> operands, initial;
};

} // namespace rota::test

#endif // ROTA_TEST_LOWERING_GPU_AGAINSTCPU_H
