// SPDX-License-Identifier: Apache-2.0
//
// Several ranks in lockstep: parts of tensors and each collective op, against
// numbers worked out by hand.
#include "test/interpreter/MeshRun.h"
#include "test/interpreter/TestModule.h"

#include "mlir/AsmParser/AsmParser.h"

#include <gtest/gtest.h>

using namespace rota::interpreter;
using mlir::rota::AxisRefAttr;
using mlir::rota::MeshAttr;
using mlir::rota::ShardingAttr;

namespace {

using Elements = std::vector<double>;

class Shardings : public testing::Test {
protected:
  ShardingAttr sharding(llvm::StringRef text) {
    return llvm::cast<ShardingAttr>(mlir::parseAttribute(
        ("#rota.sharding" + text).str(), module.getContext()));
  }
  Parts cutWhole(const Tensor &whole, llvm::StringRef text) {
    return cut(whole, sharding(text), mesh());
  }
  MeshAttr mesh() { return mlir::rota::meshOf(module.get()); }
  mlir::Location loc() { return module.get().getLoc(); }

  TestModule module{"rota.mesh <data = 2, tensor = 4>"};
};

TEST_F(Shardings, GroupsCountTheirFirstAxisSlowest) {
  auto *context = module.getContext();
  AxisRefAttr data = AxisRefAttr::get(context, mlir::rota::MeshAxis::Data);
  AxisRefAttr tensor = AxisRefAttr::get(context, mlir::rota::MeshAxis::Tensor);
  AxisGroup group(mesh(), {tensor, data});
  EXPECT_EQ(group.size(), 8);
  EXPECT_EQ(group.positionOf(6), 5); // data 1, tensor 2: 2 * 2 + 1
  EXPECT_EQ(group.member(0, 5), 6);
  EXPECT_EQ(group.member(7, 5), 6);
}

/// Position p of 4 has the parts p / 2 and p mod 2.
TEST_F(Shardings, SubAxesAreDigitsOfAPosition) {
  auto *context = module.getContext();
  auto axis = mlir::rota::MeshAxis::Tensor;
  AxisGroup major(mesh(), {AxisRefAttr::get(context, axis, 1, 2)});
  AxisGroup minor(mesh(), {AxisRefAttr::get(context, axis, 2, 2)});
  EXPECT_EQ(major.positionOf(6), 1);
  EXPECT_EQ(minor.positionOf(6), 0);
  EXPECT_EQ(major.member(6, 0), 4);
  EXPECT_EQ(minor.member(6, 1), 7);
}

TEST_F(Shardings, LastPartsAreShortAndPadded) {
  Parts parts = cutWhole(Tensor({5}, {1, 2, 3, 4, 5}), "<[[tensor]]>");
  ASSERT_EQ(parts.size(), 8u);
  EXPECT_EQ(parts[0].elements, (Elements{1, 2}));
  EXPECT_EQ(parts[2].elements, (Elements{5, 0}));
  EXPECT_EQ(parts[3].elements, (Elements{0, 0}));
  EXPECT_EQ(parts[4].elements, parts[0].elements);
}

TEST_F(Shardings, PartsOfTwoAxesAreCountedMajorFirst) {
  Parts parts =
      cutWhole(Tensor({8}, {0, 1, 2, 3, 4, 5, 6, 7}), "<[[tensor, data]]>");
  EXPECT_EQ(parts[5].elements, (Elements{3})); // data 1, tensor 1
}

TEST_F(Shardings, UnreducedSharesSumToTheWhole) {
  Parts parts = cutWhole(Tensor({2}, {8, 16}), "<[[data]] unreduced [tensor]>");
  EXPECT_EQ(parts[0].elements, (Elements{16}));
  EXPECT_EQ(parts[1].elements, (Elements{-4}));
  EXPECT_EQ(parts[2].elements, (Elements{8}));
  EXPECT_EQ(parts[3].elements, (Elements{-12}));
}

TEST_F(Shardings, JoinTakesBackWhatCutDoes) {
  Tensor whole({3, 5});
  for (int64_t i = 0; i < whole.size(); ++i)
    whole[i] = 1 + i;
  for (const char *text :
       {"<[[], []]>", "<[[data], [tensor]]>", "<[[], [tensor, data]]>",
        "<[[tensor:(2)2], [data]] unreduced [tensor:(1)2]>",
        "<[[], [data]] replicated [tensor]>",
        "<[[?], [?]] unreduced [data]>"}) {
    auto joined =
        join(loc(), cutWhole(whole, text), whole.shape, sharding(text), mesh());
    ASSERT_TRUE(succeeded(joined)) << text << module.takeDiagnostics();
    EXPECT_LT(relativeError(*joined, whole), 1e-15) << text;
  }
}

TEST_F(Shardings, JoinSeesReplicasThatDiffer) {
  Parts parts = cutWhole(Tensor({2}, {1, 2}), "<[[data]]>");
  parts[6][0] += 1e-15;
  EXPECT_TRUE(failed(join(loc(), parts, {2}, sharding("<[[data]]>"), mesh())));
  EXPECT_EQ(module.takeDiagnostics(),
            "expected the same bits on ranks 0 and 2 for "
            "#rota.sharding<[[data]]>");
}

TEST_F(Shardings, JoinSeesAPartOfAnotherShape) {
  Parts parts = cutWhole(Tensor({2}, {1, 2}), "<[[]]>");
  EXPECT_TRUE(failed(join(loc(), parts, {2}, sharding("<[[data]]>"), mesh())));
  EXPECT_EQ(module.takeDiagnostics(),
            "expected a part of another shape on rank 0 for "
            "#rota.sharding<[[data]]>");
}

/// The values that each rank of <data = 2, tensor = 2> has after `op` (its
/// result `%y`), where rank r begins with `input` + 10 r.
std::vector<Elements> runOp(llvm::StringRef op, llvm::StringRef from,
                            llvm::StringRef to, Tensor input) {
  TestModule module(
      ("rota.mesh <data = 2, tensor = 2>\nfunc.func @f(%x: " + from + ") -> " +
       to + " {\n  %y = " + op + "\n  return %y : " + to + "\n}\n")
          .str());
  EXPECT_TRUE(bool(module)) << module.takeDiagnostics();
  if (!module)
    return {};
  Parts parts;
  for (int rank = 0; rank < 4; ++rank) {
    Tensor &part = parts.emplace_back(input);
    for (double &element : part.elements)
      element += 10 * rank;
  }
  auto results = runOnMesh(module.function("f"), {parts});
  EXPECT_TRUE(succeeded(results)) << module.takeDiagnostics();
  std::vector<Elements> elements;
  if (succeeded(results))
    for (const Tensor &part : results->front())
      elements.push_back(part.elements);
  return elements;
}

TEST(Collectives, AllGatherPutsPartsInTheGroupsOrder) {
  EXPECT_EQ(
      runOp("rota.all_gather %x dim = 1 axes [<data>] reason \"\" : "
            "tensor<2x1xf64> -> tensor<2x2xf64>",
            "tensor<2x1xf64>", "tensor<2x2xf64>", Tensor({2, 1}, {1, 2})),
      (std::vector<Elements>{
          {1, 21, 2, 22}, {11, 31, 12, 32}, {1, 21, 2, 22}, {11, 31, 12, 32}}));
}

TEST(Collectives, AllGatherOfTwoAxesDropsPadding) {
  Elements whole{1, 2, 21, 22, 11, 12, 31};
  EXPECT_EQ(runOp("rota.all_gather %x dim = 0 axes [<tensor>, <data>] reason "
                  "\"\" : tensor<2xf64> -> tensor<7xf64>",
                  "tensor<2xf64>", "tensor<7xf64>", Tensor({2}, {1, 2})),
            (std::vector<Elements>{whole, whole, whole, whole}));
}

TEST(Collectives, ReduceScatterSumsAndPads) {
  EXPECT_EQ(runOp("rota.reduce_scatter %x dim = 0 axes [<tensor>] reason \"\" "
                  ": tensor<3xf64> -> tensor<2xf64>",
                  "tensor<3xf64>", "tensor<2xf64>", Tensor({3}, {1, 2, 3})),
            (std::vector<Elements>{{12, 14}, {16, 0}, {52, 54}, {56, 0}}));
}

TEST(Collectives, AllReduceSumsOrTakesTheMaximum) {
  EXPECT_EQ(runOp("rota.all_reduce sum %x axes [<data>, <tensor>] reason \"\" "
                  ": tensor<1xf64>",
                  "tensor<1xf64>", "tensor<1xf64>", Tensor({1}, {1})),
            (std::vector<Elements>{{64}, {64}, {64}, {64}}));
  EXPECT_EQ(runOp("rota.all_reduce max %x axes [<data>] reason \"\" : "
                  "tensor<1xf64>",
                  "tensor<1xf64>", "tensor<1xf64>", Tensor({1}, {1})),
            (std::vector<Elements>{{21}, {31}, {21}, {31}}));
}

TEST(Collectives, AllToAllGathersWhileItCuts) {
  EXPECT_EQ(
      runOp("rota.all_to_all %x gather = 0 split = 1 axes [<tensor>] "
            "reason \"\" : tensor<1x4xf64> -> tensor<2x2xf64>",
            "tensor<1x4xf64>", "tensor<2x2xf64>", Tensor({1, 4}, {1, 2, 3, 4})),
      (std::vector<Elements>{
          {1, 2, 11, 12}, {3, 4, 13, 14}, {21, 22, 31, 32}, {23, 24, 33, 34}}));
}

/// Two ranks of tensor, each a sequence of two blocks of two rows; rank t sends
/// the first 1 + t rows of block 0 and the first row of block 1.
TEST(Collectives, RaggedAllToAllMovesFilledRows) {
  TestModule module(R"(
    rota.mesh <tensor = 2>
    func.func @f(%x: tensor<1x4x1xf64>, %s: tensor<1x2xi32>, %r: tensor<2x1xi32>) -> tensor<2x2x1xf64> {
      %y = rota.ragged_all_to_all %x sent %s received %r gather = 0 axes [<tensor>] reason "" : (tensor<1x4x1xf64>, tensor<1x2xi32>, tensor<2x1xi32>) -> tensor<2x2x1xf64>
      return %y : tensor<2x2x1xf64>
    })");
  ASSERT_TRUE(bool(module)) << module.takeDiagnostics();
  Parts rows{Tensor({1, 4, 1}, {1, 2, 3, 4}),
             Tensor({1, 4, 1}, {11, 12, 13, 14})};
  Parts sent{Tensor({1, 2}, {1, 1}), Tensor({1, 2}, {2, 1})};
  Parts received{Tensor({2, 1}, {1, 2}), Tensor({2, 1}, {1, 1})};
  auto results = runOnMesh(module.function("f"), {rows, sent, received});
  ASSERT_TRUE(succeeded(results)) << module.takeDiagnostics();
  EXPECT_EQ(results->front()[0].elements, (Elements{1, 0, 11, 12}));
  EXPECT_EQ(results->front()[1].elements, (Elements{3, 0, 13, 0}));
}

TEST(Collectives, ShardSliceTakesItsOwnPart) {
  EXPECT_EQ(runOp("rota.shard_slice %x dim = 0 axes [<tensor>, <data>] reason "
                  "\"\" : tensor<6xf64> -> tensor<2xf64>",
                  "tensor<6xf64>", "tensor<2xf64>",
                  Tensor({6}, {1, 2, 3, 4, 5, 6})),
            (std::vector<Elements>{{1, 2}, {15, 16}, {23, 24}, {0, 0}}));
}

/// data 0, tensor 1 is at 1 of [data, tensor] and at 2 of [tensor, data], where
/// data 1, tensor 0 is at 1.
TEST(Collectives, PermuteHandsFromOneOrderToAnother) {
  EXPECT_EQ(runOp("rota.permute %x axes [<data>, <tensor>] order [<tensor>, "
                  "<data>] reason \"\" : tensor<1xf64>",
                  "tensor<1xf64>", "tensor<1xf64>", Tensor({1}, {1})),
            (std::vector<Elements>{{1}, {21}, {11}, {31}}));
}

TEST(Collectives, PermuteWithAShiftHandsAroundARing) {
  EXPECT_EQ(runOp("rota.permute %x axes [<data>, <tensor>] order [<data>, "
                  "<tensor>] shift = 1 reason \"\" : tensor<1xf64>",
                  "tensor<1xf64>", "tensor<1xf64>", Tensor({1}, {1})),
            (std::vector<Elements>{{31}, {1}, {11}, {21}}));
}

TEST(Collectives, MirroredPermuteCountsFromTheEnd) {
  EXPECT_EQ(runOp("rota.permute %x axes [<data>, <tensor>] order [<data>, "
                  "<tensor>] mirrored reason \"\" : tensor<1xf64>",
                  "tensor<1xf64>", "tensor<1xf64>", Tensor({1}, {1})),
            (std::vector<Elements>{{31}, {21}, {11}, {1}}));
  EXPECT_EQ(runOp("rota.permute %x axes [<data>, <tensor>] order [<data>, "
                  "<tensor>] mirrored shift = 1 reason \"\" : tensor<1xf64>",
                  "tensor<1xf64>", "tensor<1xf64>", Tensor({1}, {1})),
            (std::vector<Elements>{{1}, {31}, {21}, {11}}));
}

TEST(Collectives, ShardOffsetOfAnotherPosition) {
  EXPECT_EQ(runOp("rota.shard_offset axes [<tensor>, <data>] shift = 3 factor "
                  "= -2 start = 7 : tensor<i32>",
                  "tensor<1xf64>", "tensor<i32>", Tensor({1}, {1})),
            (std::vector<Elements>{{1}, {5}, {7}, {3}}));
}

TEST(Collectives, ShardOffsetCountsItsAxes) {
  EXPECT_EQ(runOp("rota.shard_offset axes [<tensor>, <data>] factor = 5 : "
                  "tensor<i32>",
                  "tensor<1xf64>", "tensor<i32>", Tensor({1}, {1})),
            (std::vector<Elements>{{0}, {10}, {5}, {15}}));
}

/// A permutation of three axes differs from its inverse: the rank at p of
/// [data, sequence, tensor] sends to the rank at p of [sequence, tensor, data].
TEST(Collectives, PermuteOfThreeAxesGoesForward) {
  TestModule module(R"(
    rota.mesh <data = 2, sequence = 2, tensor = 2>
    func.func @f(%x: tensor<1xf64>) -> tensor<1xf64> {
      %y = rota.permute %x axes [<data>, <sequence>, <tensor>] order [<sequence>, <tensor>, <data>] reason "" : tensor<1xf64>
      return %y : tensor<1xf64>
    })");
  Parts parts;
  for (int rank = 0; rank < 8; ++rank)
    parts.push_back(Tensor({1}, {double(rank)}));
  auto results = runOnMesh(module.function("f"), {parts});
  ASSERT_TRUE(succeeded(results)) << module.takeDiagnostics();
  // Rank 1 (data 0, sequence 0, tensor 1), at position 1, sends to position 1
  // of the other order: data 1, sequence 0, tensor 0, which is rank 4.
  EXPECT_EQ(results->front()[4][0], 1);
  EXPECT_EQ(results->front()[1][0], 2);
}

TEST(MeshRun, ReadsAndAccumulatesOnEachRank) {
  TestModule module(R"(
    rota.mesh <tensor = 2>
    rota.param @w : tensor<1xf64> axes ["x"] init #rota.constant<value = 1.0>
    func.func @f(%x: tensor<1xf64>) {
      %w = rota.read @w : tensor<1xf64>
      %y = arith.mulf %x, %w : tensor<1xf64>
      rota.accumulate @w, %y : tensor<1xf64>
      return
    })");
  Tensor parameters[] = {Tensor({1}, {2}), Tensor({1}, {3})};
  Tensor gradients[] = {Tensor({1}, {100}), Tensor({1}, {200})};
  std::vector<Environment> environments(2);
  for (int rank : {0, 1}) {
    environments[rank].parameters["w"] = &parameters[rank];
    environments[rank].gradients["w"] = &gradients[rank];
  }
  Parts input{Tensor({1}, {5}), Tensor({1}, {7})};
  ASSERT_TRUE(
      succeeded(runOnMesh(module.function("f"), {input}, environments)));
  EXPECT_EQ(gradients[0][0], 110);
  EXPECT_EQ(gradients[1][0], 221);
}

TEST(MeshRun, RefusesPartsOfAnotherShape) {
  TestModule module(R"(
    rota.mesh <tensor = 2>
    func.func @f(%x: tensor<2xf64>) {
      return
    })");
  Parts input{Tensor({2}), Tensor({1})};
  EXPECT_TRUE(failed(runOnMesh(module.function("f"), {input})));
  EXPECT_EQ(module.takeDiagnostics(),
            "'func.func' op expected argument 0 of type 'tensor<2xf64>', got a "
            "tensor of shape [1]");
}

} // namespace
