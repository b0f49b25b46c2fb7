// SPDX-License-Identifier: Apache-2.0
//
// The table of functions, and roles in a split model with several residuals.
#include "ir/rota/model/Model.h"

#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"

#include <set>

using namespace mlir;
using namespace mlir::rota;

namespace {

const char *const splitModel = R"(
rota.stack @layers layers = 2 pattern [@a] {
  rota.layer @a {
    func.func private @forward(tensor<2x4xf32>) -> (tensor<2x4xf32>, tensor<2xf32>, tensor<3xf32> {rota.offload})
    func.func private @backward_input(tensor<2x4xf32>, tensor<2xf32>, tensor<3xf32> {rota.offload}, tensor<2x4xf32>) -> (tensor<2x4xf32>, tensor<5xf32>)
    func.func private @backward_weight(tensor<2x4xf32>, tensor<2xf32>, tensor<3xf32> {rota.offload}, tensor<5xf32>)
  }
}
func.func private @embed(tensor<2xi32>) -> tensor<2x4xf32>
func.func private @embed_backward(tensor<2xi32>, tensor<2x4xf32>)
func.func private @loss(tensor<2x4xf32>, tensor<2xi32>) -> (tensor<f32>, tensor<f32>)
func.func private @loss_weight(tensor<2xi32>) -> tensor<f32>
func.func private @logits(tensor<2x4xf32>) -> tensor<2x7xf32>
)";

class Roles : public testing::Test {
protected:
  Roles() {
    context.loadDialect<RotaDialect>();
    module = parseSourceString<ModuleOp>(splitModel, &context);
    model = *Model::get(*module);
    layer = model.kinds().front();
  }

  FunctionRoles rolesOf(FunctionKind kind) {
    return FunctionRoles(Model::function(layer, kind));
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  Model model;
  LayerOp layer;
};

using List = SmallVector<Role>;

TEST(Signatures, NameEachFunctionAndEachRoleOnce) {
  std::set<std::pair<ModelPart, FunctionKind>> functions;
  for (const Signature &row : signatures()) {
    EXPECT_TRUE(functions.insert({row.part, row.kind}).second)
        << row.name.str();
    EXPECT_EQ(&signatureOf(row.part, row.kind), &row);
    for (const auto &list : {row.arguments, row.results})
      EXPECT_EQ(std::set<Role>(list.begin(), list.end()).size(), list.size())
          << row.name.str();
    // `loss` as built tells the number of terms, and the results alone that of
    // residuals.
    EXPECT_LE(llvm::count_if(row.results, isResidual), 1) << row.name.str();
  }
}

TEST_F(Roles, FollowTheResidualsThatForwardMakes) {
  EXPECT_EQ(List(rolesOf(FunctionKind::Forward).results()),
            List({Role::OutputActivation, Role::Residual, Role::Residual}));
  EXPECT_EQ(List(rolesOf(FunctionKind::BackwardInput).arguments()),
            List({Role::InputActivation, Role::Residual, Role::Residual,
                  Role::OutputCotangent}));
  FunctionRoles weight = rolesOf(FunctionKind::BackwardWeight);
  EXPECT_EQ(List(weight.arguments()),
            List({Role::InputActivation, Role::Residual, Role::Residual,
                  Role::CotangentResidual}));
  EXPECT_EQ(weight.argument(Role::CotangentResidual).index, 3u);
}

TEST_F(Roles, OfAProbe) {
  FunctionRoles logits(model.function("logits"));
  EXPECT_EQ(logits.signature().kind, FunctionKind::Probe);
  EXPECT_EQ(List(logits.arguments()), List({Role::InputActivation}));
  EXPECT_EQ(List(logits.results()), List({Role::NamedValue}));
}

TEST_F(Roles, MakeResidualEdges) {
  SmallVector<std::string> edges;
  for (const RoleEdge &edge : residualEdgesIn(layer)) {
    edges.push_back(edge.source.describe() + " -> " + edge.user.describe());
    EXPECT_EQ(edge.source.isOffloaded(), edge.user.isOffloaded());
  }
  EXPECT_EQ(edges,
            (SmallVector<std::string>{
                "result 1 of 'forward' -> argument 1 of 'backward_input'",
                "result 2 of 'forward' -> argument 2 of 'backward_input'",
                "result 1 of 'forward' -> argument 1 of 'backward_weight'",
                "result 2 of 'forward' -> argument 2 of 'backward_weight'",
                "result 1 of 'backward_input' -> argument 3 of "
                "'backward_weight'"}));
}

TEST_F(Roles, HaveOneSourceInTheModule) {
  FunctionPort tokens = sourcesIn(model.module, Role::Tokens).front();
  EXPECT_EQ(tokens.describe(), "argument 0 of 'embed'");
  EXPECT_EQ(sourcesIn(model.module, Role::LossWeight).front().describe(),
            "result 1 of 'loss'");
  EXPECT_TRUE(sourcesIn(model.module, Role::Residual).empty());
}

TEST(RoleValues, AreOrderedByASignature) {
  RoleValues<int> values = {{Role::OutputActivation, 1}, {Role::Targets, 2}};
  values.assign({Role::LossSum, Role::Residual, Role::Residual},
                ArrayRef<int>{3, 4, 5});
  EXPECT_EQ(values.one(Role::LossSum), 3);
  EXPECT_EQ(values.inOrder({Role::Residual, Role::LossWeight, Role::Targets}),
            (SmallVector<int>{4, 5, 2}));
}

} // namespace
