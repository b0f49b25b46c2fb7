// SPDX-License-Identifier: Apache-2.0
//
// The optimizer's kernels as the runtime calls them, against the formula in
// f64.
#include "lowering/executable/Optimizer.h"
#include "test/interpreter/TestModule.h"
#include "test/lowering/kernels/KernelHarness.h"

#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

using namespace rota::lowering;
using rota::interpreter::TestModule;

namespace {

enum Scalar {
  Rate,
  Beta1,
  Beta2,
  Epsilon,
  Decay,
  Correction1,
  Correction2,
  Scale
};

/// A parameter of f32 with or without a bf16 copy.
rota::Parameter makeParameter(std::vector<int64_t> shape, int64_t rows,
                              bool hasCopy) {
  rota::Parameter parameter;
  parameter.shape = std::move(shape);
  parameter.rows = rows;
  parameter.compute =
      hasCopy ? rota::ElementType::BF16 : rota::ElementType::F32;
  return parameter;
}

void checkOptimizer(std::vector<int64_t> shape, int64_t rows, bool hasCopy) {
  TestModule context("");
  rota::Program program;
  program.parameters = {makeParameter(shape, rows, hasCopy)};
  KernelLibrary library(context.getContext(), 512);
  ASSERT_TRUE(succeeded(addOptimizer(
      mlir::UnknownLoc::get(context.getContext()), program, library)))
      << context.takeDiagnostics();
  auto jit = rota::test::linkKernels(library);
  ASSERT_TRUE(jit) << context.takeDiagnostics();
  auto lookup = [&](int number) {
    return rota::test::lookupKernel(*jit, program.kernels.at(number));
  };
  auto update = lookup(program.parameters[0].updateKernel);
  auto square = lookup(program.parameters[0].squareKernel);

  int64_t size = elementCount(program.parameters[0]);
  std::vector<float> p(size), g(size), m(size), v(size), sums(rows, NAN);
  std::vector<uint16_t> copy(size);
  for (int64_t i = 0; i < size; ++i) {
    p[i] = 0.25f * (i % 13) - 1;
    g[i] = 0.5f * (i % 7) - 1.3f;
    m[i] = 0.01f * (i % 5);
    v[i] = 0.02f * (i % 3) + 0.1f;
  }
  std::vector<float> p0 = p, g0 = g, m0 = m, v0 = v;
  float s[] = {0.01f, 0.9f, 0.99f, 1e-6f, 0.1f, 0.271f, 0.0297f, 0.5f};

  void *squareArgs[] = {g.data(), sums.data()};
  square(squareArgs, 0, rows);
  std::vector<void *> args = {p.data(), g.data(), m.data(), v.data()};
  for (float &scalar : s)
    args.push_back(&scalar);
  args.insert(args.end(), {p.data(), m.data(), v.data(), g.data()});
  args.push_back(copy.data());
  update(args.data(), 0, rows);

  for (int64_t row = 0; row < rows; ++row) {
    double sum = 0;
    for (int64_t i = row * size / rows; i < (row + 1) * size / rows; ++i)
      sum += double(g0[i]) * g0[i];
    EXPECT_NEAR(sums[row], sum, 1e-6 * sum);
  }
  for (int64_t i = 0; i < size; ++i) {
    double gi = double(s[Scale]) * g0[i];
    double mi = s[Beta1] * double(m0[i]) + (1.0 - s[Beta1]) * gi;
    double vi = s[Beta2] * double(v0[i]) + (1.0 - s[Beta2]) * gi * gi;
    double step =
        mi / s[Correction1] / (std::sqrt(vi / s[Correction2]) + s[Epsilon]);
    double pi = p0[i] - s[Rate] * (step + s[Decay] * double(p0[i]));
    ASSERT_NEAR(p[i], pi, 1e-6) << i;
    ASSERT_NEAR(m[i], mi, 1e-6) << i;
    ASSERT_NEAR(v[i], vi, 1e-6) << i;
    ASSERT_EQ(g[i], 0.0f) << i;
    float widened = std::bit_cast<float>(uint32_t(copy[i]) << 16);
    ASSERT_EQ(widened,
              hasCopy ? float(rota::interpreter::roundToBF16(p[i])) : 0.0f)
        << i;
  }
}

TEST(Optimizer, Matrix) { checkOptimizer({5, 33}, 5, false); }

TEST(Optimizer, MatrixWithCopy) { checkOptimizer({7, 96}, 7, true); }

TEST(Optimizer, Vector) { checkOptimizer({40}, 1, true); }

TEST(Optimizer, MoreDimensions) { checkOptimizer({2, 3, 4}, 6, false); }

TEST(Optimizer, OneKernelForRowsOfOneLength) {
  TestModule context("");
  rota::Program program;
  program.parameters = {makeParameter({3, 8}, 3, true),
                        makeParameter({5, 8}, 5, true),
                        makeParameter({5, 8}, 5, false)};
  KernelLibrary library(context.getContext(), 512);
  ASSERT_TRUE(succeeded(addOptimizer(
      mlir::UnknownLoc::get(context.getContext()), program, library)))
      << context.takeDiagnostics();
  const auto &parameters = program.parameters;
  EXPECT_EQ(parameters[0].updateKernel, parameters[1].updateKernel);
  EXPECT_EQ(parameters[0].squareKernel, parameters[1].squareKernel);
  EXPECT_NE(parameters[1].updateKernel, parameters[2].updateKernel);
  EXPECT_EQ(parameters[1].squareKernel, parameters[2].squareKernel);
}

} // namespace
