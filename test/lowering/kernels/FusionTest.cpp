// SPDX-License-Identifier: Apache-2.0
//
// Functions of composite ops, before and after fusion: the interpreter on the
// function as written, native kernels on what form-kernels makes of it.
#include "lowering/kernels/Passes.h"
#include "test/interpreter/TestModule.h"
#include "test/lowering/kernels/KernelHarness.h"
#include "test/lowering/kernels/RandomTensor.h"

#include <gtest/gtest.h>

using namespace rota::interpreter;
using rota::test::KernelHarness;
using rota::test::randomTensor;

namespace {

void checkFused(const std::string &text, double tolerance, int64_t calls) {
  rota::lowering::registerKernelsPasses();
  TestModule module(text);
  ASSERT_TRUE(bool(module)) << module.takeDiagnostics();
  std::vector<Tensor> arguments;
  for (mlir::Type type : module.function("f").getArgumentTypes())
    arguments.push_back(randomTensor(type, arguments.size()));
  auto expected = runFunction(module.function("f"), arguments, Options{true});
  ASSERT_TRUE(succeeded(expected)) << module.takeDiagnostics();
  ASSERT_TRUE(succeeded(module.run("decompose,form-kernels")))
      << module.takeDiagnostics();
  auto harness = KernelHarness::compile(module.function("f"));
  ASSERT_TRUE(harness) << module.takeDiagnostics();
  EXPECT_EQ(harness->countCalls(), calls);
  for (int64_t pieces : {1, 3}) {
    auto results = harness->run(arguments, pieces);
    for (size_t i = 0; i < results.size(); ++i)
      EXPECT_LE(relativeError(results[i], (*expected)[i]), tolerance)
          << "result " << i;
  }
}

TEST(Fusion, ResidualAndNorm) {
  checkFused(R"(
    func.func @f(%x: tensor<2x4x40xbf16>, %a: tensor<2x4x40xbf16>, %gain: tensor<40xbf16>) -> (tensor<2x4x40xbf16>, tensor<2x4x40xbf16>) {
      %h = arith.addf %x, %a : tensor<2x4x40xbf16>
      %y = rota.rms_norm %h, %gain epsilon = 1.0e-05 : tensor<2x4x40xbf16>, tensor<40xbf16>
      return %h, %y : tensor<2x4x40xbf16>, tensor<2x4x40xbf16>
    })",
             4e-3, 1);
}

TEST(Fusion, NormDerivativeAndResidual) {
  checkFused(R"(
    func.func @f(%dy: tensor<2x4x40xf32>, %x: tensor<2x4x40xf32>, %gain: tensor<40xf32>, %r: tensor<2x4x40xf32>) -> (tensor<2x4x40xf32>, tensor<40xf32>) {
      %dx, %dgain = rota.rms_norm_grad %dy, %x, %gain epsilon = 1.0e-05 : (tensor<2x4x40xf32>, tensor<2x4x40xf32>, tensor<40xf32>) -> (tensor<2x4x40xf32>, tensor<40xf32>)
      %s = arith.addf %dx, %r : tensor<2x4x40xf32>
      return %s, %dgain : tensor<2x4x40xf32>, tensor<40xf32>
    })",
             2e-6, 2);
}

TEST(Fusion, SwiGLUWithItsDerivative) {
  checkFused(R"(
    func.func @f(%dy: tensor<6x48xf32>, %gate: tensor<6x48xf32>, %up: tensor<6x48xf32>) -> (tensor<6x48xf32>, tensor<6x48xf32>, tensor<6x48xf32>) {
      %y = rota.activation silu %gate, %up : tensor<6x48xf32>
      %dgate, %dup = rota.activation_grad silu %dy, %gate, %up : (tensor<6x48xf32>, tensor<6x48xf32>, tensor<6x48xf32>) -> (tensor<6x48xf32>, tensor<6x48xf32>)
      return %y, %dgate, %dup : tensor<6x48xf32>, tensor<6x48xf32>, tensor<6x48xf32>
    })",
             2e-6, 1);
}

TEST(Fusion, AdamW) {
  checkFused(R"(
    func.func @f(%p: tensor<4x33xf32>, %g: tensor<4x33xf32>, %m: tensor<4x33xf32>, %w: tensor<4x33xf32>, %a: tensor<f32>, %b: tensor<f32>) -> (tensor<4x33xf32>, tensor<4x33xf32>, tensor<4x33xf32>, tensor<4x33xf32>, tensor<4x33xbf16>) {
      %v = arith.mulf %w, %w : tensor<4x33xf32>
      %s = math.absf %a : tensor<f32>
      %t = math.absf %b : tensor<f32>
      %lr_ = rota.broadcast %s dims [] : tensor<f32> -> tensor<4x33xf32>
      %r1_ = rota.broadcast %s dims [] : tensor<f32> -> tensor<4x33xf32>
      %r2_ = rota.broadcast %t dims [] : tensor<f32> -> tensor<4x33xf32>
      %eps_ = rota.broadcast %s dims [] : tensor<f32> -> tensor<4x33xf32>
      %wd_ = rota.broadcast %t dims [] : tensor<f32> -> tensor<4x33xf32>
      %c1_ = rota.broadcast %s dims [] : tensor<f32> -> tensor<4x33xf32>
      %c2_ = rota.broadcast %t dims [] : tensor<f32> -> tensor<4x33xf32>
      %gscale = rota.broadcast %s dims [] : tensor<f32> -> tensor<4x33xf32>
      %gs = arith.mulf %gscale, %g : tensor<4x33xf32>
      %m0 = arith.mulf %r1_, %m : tensor<4x33xf32>
      %m1 = arith.subf %m, %m0 : tensor<4x33xf32>
      %m2 = arith.mulf %r1_, %gs : tensor<4x33xf32>
      %m3 = arith.addf %m1, %m2 : tensor<4x33xf32>
      %sq = arith.mulf %gs, %gs : tensor<4x33xf32>
      %v0 = arith.mulf %r2_, %v : tensor<4x33xf32>
      %v1 = arith.subf %v, %v0 : tensor<4x33xf32>
      %v2 = arith.mulf %r2_, %sq : tensor<4x33xf32>
      %v3 = arith.addf %v1, %v2 : tensor<4x33xf32>
      %vc = arith.divf %v3, %c2_ : tensor<4x33xf32>
      %root = math.sqrt %vc : tensor<4x33xf32>
      %den = arith.addf %root, %eps_ : tensor<4x33xf32>
      %mc = arith.divf %m3, %c1_ : tensor<4x33xf32>
      %step = arith.divf %mc, %den : tensor<4x33xf32>
      %dec = arith.mulf %wd_, %p : tensor<4x33xf32>
      %full = arith.addf %step, %dec : tensor<4x33xf32>
      %move = arith.mulf %lr_, %full : tensor<4x33xf32>
      %q = arith.subf %p, %move : tensor<4x33xf32>
      %zero = arith.constant dense<0.0> : tensor<4x33xf32>
      %copy = arith.truncf %q : tensor<4x33xf32> to tensor<4x33xbf16>
      return %q, %m3, %v3, %zero, %copy : tensor<4x33xf32>, tensor<4x33xf32>, tensor<4x33xf32>, tensor<4x33xf32>, tensor<4x33xbf16>
    })",
             4e-3, 1);
}

/// The second kernel reads the first one's sum.
TEST(Fusion, SumThatIsUsedAgain) {
  checkFused(R"(
    func.func @f(%x: tensor<2x3x8xf32>) -> (tensor<2x3x8xf32>, tensor<f32>) {
      %s = rota.reduce sum %x dims [0, 1, 2] : tensor<2x3x8xf32> -> tensor<f32>
      %b = rota.broadcast %s dims [] : tensor<f32> -> tensor<2x3x8xf32>
      %c = arith.mulf %x, %b : tensor<2x3x8xf32>
      return %c, %s : tensor<2x3x8xf32>, tensor<f32>
    })",
             2e-6, 3);
}

/// Broadcasts along any rows: of a batch, of a position, of a head.
TEST(Fusion, BroadcastsAlongRows) {
  checkFused(R"(
    func.func @f(%x: tensor<2x3x5x8xf32>, %b: tensor<2x8xf32>, %s: tensor<3x8xf32>, %h: tensor<2x5xf32>, %v: tensor<3xf32>) -> tensor<2x3x5x8xf32> {
      %0 = rota.broadcast %b dims [0, 3] : tensor<2x8xf32> -> tensor<2x3x5x8xf32>
      %1 = rota.broadcast %s dims [1, 3] : tensor<3x8xf32> -> tensor<2x3x5x8xf32>
      %2 = rota.broadcast %h dims [0, 2] : tensor<2x5xf32> -> tensor<2x3x5x8xf32>
      %3 = rota.broadcast %v dims [1] : tensor<3xf32> -> tensor<2x3x5x8xf32>
      %4 = arith.addf %x, %0 : tensor<2x3x5x8xf32>
      %5 = arith.mulf %4, %1 : tensor<2x3x5x8xf32>
      %6 = arith.subf %5, %2 : tensor<2x3x5x8xf32>
      %7 = arith.mulf %6, %3 : tensor<2x3x5x8xf32>
      return %7 : tensor<2x3x5x8xf32>
    })",
             2e-6, 1);
}

/// Sums over the first dimensions or the last ones, more than one of each.
TEST(Fusion, SumsOverSeveralDimensions) {
  checkFused(R"(
    func.func @f(%x: tensor<2x3x5x8xf32>) -> (tensor<5x8xf32>, tensor<2x3xf32>, tensor<3x5x8xf32>) {
      %0 = rota.reduce sum %x dims [0, 1] : tensor<2x3x5x8xf32> -> tensor<5x8xf32>
      %1 = rota.reduce max %x dims [2, 3] : tensor<2x3x5x8xf32> -> tensor<2x3xf32>
      %2 = rota.reduce sum %x dims [0] : tensor<2x3x5x8xf32> -> tensor<3x5x8xf32>
      return %0, %1, %2 : tensor<5x8xf32>, tensor<2x3xf32>, tensor<3x5x8xf32>
    })",
             2e-6, 4);
}

/// Through a reshape that keeps the last dimension, and one that does not.
TEST(Fusion, Reshapes) {
  checkFused(R"(
    func.func @f(%x: tensor<2x3x8xf32>) -> (tensor<6x8xf32>, tensor<48xf32>) {
      %0 = arith.mulf %x, %x : tensor<2x3x8xf32>
      %1 = rota.reshape %0 : tensor<2x3x8xf32> -> tensor<6x8xf32>
      %2 = rota.reduce sum %1 dims [1] : tensor<6x8xf32> -> tensor<6xf32>
      %3 = rota.broadcast %2 dims [0] : tensor<6xf32> -> tensor<6x8xf32>
      %4 = arith.divf %1, %3 : tensor<6x8xf32>
      %5 = rota.reshape %4 : tensor<6x8xf32> -> tensor<48xf32>
      %6 = math.exp %5 : tensor<48xf32>
      return %4, %6 : tensor<6x8xf32>, tensor<48xf32>
    })",
             2e-6, 2);
}

TEST(Fusion, ConditionsAndConstants) {
  checkFused(R"(
    func.func @f(%x: tensor<3x7xf32>) -> (tensor<3x7xf32>, tensor<f32>) {
      %zero = arith.constant dense<0.0> : tensor<3x7xf32>
      %c = arith.cmpf ogt, %x, %zero : tensor<3x7xf32>
      %e = math.tanh %x : tensor<3x7xf32>
      %y = arith.select %c, %e, %zero : tensor<3x7xi1>, tensor<3x7xf32>
      %one = arith.constant dense<1.0> : tensor<f32>
      return %y, %one : tensor<3x7xf32>, tensor<f32>
    })",
             2e-6, 2);
}

} // namespace
