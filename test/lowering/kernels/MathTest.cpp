// SPDX-License-Identifier: Apache-2.0
//
// Elementwise math as machine code: relative errors over the whole range, what
// happens at its ends, and rounding to bf16.
#include "test/interpreter/TestModule.h"
#include "test/lowering/kernels/KernelHarness.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

using namespace rota::lowering;
using rota::interpreter::TestModule;

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// Applies `lines`, which make %y of %x, to 64 columns at a time.
std::vector<float> compute(const std::string &lines, std::vector<float> numbers,
                           const std::string &cpu = "native") {
  TestModule module(R"(
    rota.kernel @k operands [affine_map<(d0) -> (d0)>] results [#rota.result<row>] {
    ^bb0(%x: tensor<64xf32>):
      )" + lines + R"(
      rota.yield %y : tensor<64xf32>
    }
    func.func @f(%x: tensor<1x64xf32>) -> tensor<1x64xf32> {
      %y = rota.launch @k rows = 1 (%x) : (tensor<1x64xf32>) -> tensor<1x64xf32>
      return %y : tensor<1x64xf32>
    })");
  KernelLibrary library(module.getContext(), 512);
  auto &launch = module.function("f").getBody().front().front();
  auto plan = planKernels(&launch, {false}, library);
  EXPECT_TRUE(succeeded(plan)) << module.takeDiagnostics();
  auto code = rota::test::linkKernels(library, {cpu});
  EXPECT_TRUE(code) << module.takeDiagnostics();
  if (failed(plan) || !code)
    return {};
  auto kernel = rota::test::lookupKernel(*code, plan->calls.front().symbol);
  size_t size = numbers.size();
  numbers.resize((size + 63) / 64 * 64, 1.0f);
  std::vector<float> results(numbers.size());
  void *args[] = {numbers.data(), results.data()};
  kernel(args, 0, numbers.size() / 64);
  results.resize(size);
  return results;
}

std::string unary(const std::string &name) {
  return "%y = " + name + " %x : tensor<64xf32>";
}

std::vector<float> range(float low, float high, int count = 100000) {
  std::vector<float> numbers;
  for (int i = 0; i <= count; ++i)
    numbers.push_back(low + (high - low) * i / count);
  return numbers;
}

double worst(const std::string &name, const std::vector<float> &numbers,
             double (*exact)(double)) {
  auto results = compute(unary(name), numbers);
  double error = 0;
  for (size_t i = 0; i < results.size(); ++i) {
    double want = exact(numbers[i]);
    error = std::max(error, std::abs(results[i] - want) /
                                std::max(std::abs(want), 1e-37));
  }
  return error;
}

TEST(Math, RelativeErrors) {
  EXPECT_LE(worst("math.exp", range(-87, 88), std::exp), 2e-7);
  EXPECT_LE(worst("math.exp", range(-1, 1), std::exp), 2e-7);
  EXPECT_LE(worst("math.log", range(1e-6, 3), std::log), 4e-7);
  EXPECT_LE(worst("math.log", range(2, 1e6), std::log), 2e-7);
  EXPECT_LE(worst("math.tanh", range(-12, 12), std::tanh), 3e-7);
  EXPECT_LE(worst("math.sqrt", range(0, 100), std::sqrt), 6.1e-8);
}

TEST(Math, EndsOfTheRange) {
  auto exp = compute(unary("math.exp"),
                     {-kInfinity, kInfinity, NAN, -200, 200, 0, -104, 89});
  EXPECT_EQ(exp[0], 0.0f);
  EXPECT_EQ(exp[1], kInfinity);
  EXPECT_TRUE(std::isnan(exp[2]));
  EXPECT_LE(exp[3], 1e-37f);
  EXPECT_GE(exp[3], 0.0f);
  EXPECT_EQ(exp[4], kInfinity);
  EXPECT_EQ(exp[5], 1.0f);
  EXPECT_LE(exp[6], 1e-37f);
  EXPECT_EQ(exp[7], kInfinity);
  auto log = compute(unary("math.log"), {0, kInfinity, -1, NAN, 1});
  EXPECT_EQ(log[0], -kInfinity);
  EXPECT_EQ(log[1], kInfinity);
  EXPECT_TRUE(std::isnan(log[2]));
  EXPECT_TRUE(std::isnan(log[3]));
  EXPECT_EQ(log[4], 0.0f);
  auto tanh = compute(unary("math.tanh"), {-kInfinity, kInfinity, NAN, 0, 50});
  EXPECT_EQ(tanh[0], -1.0f);
  EXPECT_EQ(tanh[1], 1.0f);
  EXPECT_TRUE(std::isnan(tanh[2]));
  EXPECT_EQ(tanh[3], 0.0f);
  EXPECT_EQ(tanh[4], 1.0f);
}

TEST(Math, RoundsToNearestEven) {
  std::vector<float> numbers = {kInfinity, -kInfinity, 0.0f, -0.0f};
  for (uint32_t bits = 0; bits < 0x7f800000; bits += 0x3fff)
    for (uint32_t sign : {0u, 0x80000000u})
      numbers.push_back(std::bit_cast<float>(bits | sign));
  for (uint32_t bits = 0x3f7f0000; bits < 0x3f830000; bits += 0x8000)
    numbers.push_back(std::bit_cast<float>(bits)); // ties
  auto processors = rota::test::otherProcessors();
  processors.push_back("native");
  for (const std::string &cpu : processors) {
    auto rounded =
        compute("%b = arith.truncf %x : tensor<64xf32> to tensor<64xbf16>\n"
                "%y = arith.extf %b : tensor<64xbf16> to tensor<64xf32>",
                numbers, cpu);
    for (size_t i = 0; i < rounded.size(); ++i)
      ASSERT_EQ(rounded[i], float(rota::interpreter::roundToBF16(numbers[i])))
          << cpu << " " << numbers[i];
  }
}

/// Kernels for any processor that this one can run give the same bits.
TEST(Math, SameBitsForEveryProcessor) {
  for (const char *name : {"math.exp", "math.log", "math.tanh"}) {
    auto numbers = range(0.01f, 20, 1000);
    auto native = compute(unary(name), numbers);
    for (const std::string &cpu : rota::test::otherProcessors())
      EXPECT_EQ(compute(unary(name), numbers, cpu), native) << name << cpu;
  }
}

} // namespace
