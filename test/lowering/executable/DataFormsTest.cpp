// SPDX-License-Identifier: Apache-2.0
//
// Bounds of a model's tokens and targets.
#include "lowering/executable/DataForms.h"
#include "test/interpreter/TestModule.h"

#include <gtest/gtest.h>

using namespace rota;
using namespace rota::lowering;
using interpreter::TestModule;

namespace {

/// A model of tokens; `embed` and `loss` are the bodies of its functions up to
/// the values that they return.
std::string model(const std::string &embed, const std::string &loss,
                  const std::string &targets = "2x4xi32") {
  return R"(
    rota.mesh <tensor = 2>
    rota.param @small : tensor<16x8xf32> axes ["a", "b"] init #rota.constant<value = 1.0>
    rota.param @large : tensor<32x8xf32> axes ["a", "b"] init #rota.constant<value = 1.0>
    rota.stack @layers layers = 1 pattern [@a] {
      rota.layer @a {
        func.func @forward(%x: tensor<2x4x8xf32>) -> tensor<2x4x8xf32> {
          return %x : tensor<2x4x8xf32>
        }
      }
    }
    func.func @embed(%t: tensor<2x4xi32>) -> tensor<2x4x8xf32> {
      %small = rota.read @small : tensor<16x8xf32>
      %large = rota.read @large : tensor<32x8xf32>
      )" +
         embed + R"(
      return %x : tensor<2x4x8xf32>
    }
    func.func @loss(%x: tensor<2x4x8xf32>, %t: tensor<)" +
         targets + R"(>) -> (tensor<f32>, tensor<f32>) {
      )" +
         loss + R"(
      return %sum, %weight : tensor<f32>, tensor<f32>
    })";
}

const std::string embedding =
    "%x = rota.embedding %t, %large : (tensor<2x4xi32>, tensor<32x8xf32>) -> "
    "tensor<2x4x8xf32>";
const std::string crossEntropy =
    "%sum, %weight, %lse = rota.cross_entropy %x, %t : (tensor<2x4x8xf32>, "
    "tensor<2x4xi32>) -> (tensor<f32>, tensor<f32>, tensor<2x4xf32>)";

Program describe(const std::string &text, std::string *errors = nullptr) {
  TestModule module(text);
  Program program;
  EXPECT_TRUE(bool(module)) << module.takeDiagnostics();
  auto parts = mlir::rota::Model::get(module.get());
  auto mesh = ProgramMesh::get(module.get());
  EXPECT_TRUE(succeeded(parts) && succeeded(mesh)) << module.takeDiagnostics();
  bool isDescribed = succeeded(describeData(*parts, *mesh, program));
  EXPECT_EQ(isDescribed, !errors) << module.takeDiagnostics();
  if (errors)
    *errors = module.takeDiagnostics();
  return program;
}

} // namespace

TEST(DataForms, TargetsAreBoundedByTheLoss) {
  Program program = describe(model(embedding, crossEntropy));
  EXPECT_EQ(program.vocabulary, 32);
  EXPECT_EQ(program.classes, 8);
}

TEST(DataForms, TokensAreBoundedByEveryTableThatTheyReach) {
  std::string first = R"(
      %flat = rota.reshape %t : tensor<2x4xi32> -> tensor<1x8xi32>
      %y = rota.embedding %flat, %small : (tensor<1x8xi32>, tensor<16x8xf32>) -> tensor<1x8x8xf32>
  )";
  EXPECT_EQ(describe(model(first + embedding, crossEntropy)).vocabulary, 16);
  // Whatever the order.
  EXPECT_EQ(describe(model(embedding + first, crossEntropy)).vocabulary, 16);
}

TEST(DataForms, PartsOfAVocabularyCountWhole) {
  std::string part = R"(
      %o = rota.shard_offset axes [<tensor>] factor = 32 : tensor<i32>
      %x = rota.embedding %t, %large offset %o )";
  std::string types = ": (tensor<2x4xi32>, tensor<32x8xf32>, tensor<i32>) -> "
                      "tensor<2x4x8xf32>";
  std::string loss = R"(
      %o = rota.shard_offset axes [<tensor>] factor = 8 : tensor<i32>
      %parts = rota.cross_entropy_shard %x, %t offset %o of 15 : (tensor<2x4x8xf32>, tensor<2x4xi32>, tensor<i32>) -> tensor<2x4x2xf32>
      %all = rota.all_gather %parts dim = 2 axes [<tensor>] reason "test" : tensor<2x4x2xf32> -> tensor<2x4x4xf32>
      %sum, %weight, %lse = rota.cross_entropy_merge %all, %t : (tensor<2x4x4xf32>, tensor<2x4xi32>) -> (tensor<f32>, tensor<f32>, tensor<2x4xf32>))";
  Program program = describe(model(part + types, loss));
  EXPECT_EQ(program.vocabulary, 64);
  EXPECT_EQ(program.classes, 15);
  EXPECT_EQ(describe(model(part + "of 61 " + types, loss)).vocabulary, 61);
}

/// An offset of unknown origin makes every number legal.
TEST(DataForms, TokensThatNothingBoundsFitTheirType) {
  std::string embed = R"(
      %o = arith.constant dense<3> : tensor<i32>
      %x = rota.embedding %t, %large offset %o : (tensor<2x4xi32>, tensor<32x8xf32>, tensor<i32>) -> tensor<2x4x8xf32>)";
  EXPECT_EQ(describe(model(embed, crossEntropy)).vocabulary, int64_t(1) << 31);
}

TEST(DataForms, RefusesTargetsThatNoDataHas) {
  std::string constants = R"(
      %sum = arith.constant dense<2.0> : tensor<f32>
      %weight = arith.constant dense<3.0> : tensor<f32>)";
  std::string errors;
  describe(model(embedding, constants, "2x4x8xf32"), &errors);
  EXPECT_NE(errors.find("expected targets of integers, as the inputs are "
                        "tokens, got 'tensor<2x4x8xf32>'"),
            std::string::npos)
      << errors;
  describe(model(embedding, constants, "2x8xi32"), &errors);
  EXPECT_NE(errors.find("expected a target for each input token, got "
                        "'tensor<2x8xi32>'"),
            std::string::npos)
      << errors;
}
