// SPDX-License-Identifier: Apache-2.0
//
// Questions whose cheapest plan is known.
#include "passes/shard/reshard/ReshardPlanner.h"
#include "ir/rota/sharding/Sharding.h"

#include "mlir/AsmParser/AsmParser.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace mlir::rota;

namespace {

class ReshardPlannerTest : public testing::Test {
protected:
  ReshardPlannerTest() { context.loadDialect<RotaDialect>(); }

  template <typename T> T parse(StringRef kind, StringRef text) {
    return cast<T>(
        parseAttribute(("#rota." + kind + "<" + text + ">").str(), &context));
  }

  /// The plan's steps, one a line.
  std::string plan(ArrayRef<int64_t> shape, StringRef mesh, StringRef from,
                   StringRef to, std::optional<double> fill = std::nullopt) {
    last = planReshard(RankedTensorType::get(shape, Float32Type::get(&context)),
                       parse<ShardingAttr>("sharding", from),
                       parse<ShardingAttr>("sharding", to),
                       parse<MeshAttr>("mesh", mesh), fill);
    std::string text;
    llvm::raw_string_ostream stream(text);
    for (const ReshardStep &step : last.steps) {
      static constexpr StringLiteral names[] = {"all_gather",  "reduce_scatter",
                                                "all_reduce",  "all_to_all",
                                                "shard_slice", "permute"};
      stream << (step.isRagged ? "ragged " : "") << names[size_t(step.kind)];
      if (step.dim >= 0)
        stream << " " << step.dim;
      if (step.split >= 0)
        stream << " to " << step.split;
      auto printAxes = [&](ArrayRef<AxisRefAttr> axes) {
        stream << " [";
        llvm::interleaveComma(axes, stream, [&](AxisRefAttr ref) {
          std::string name;
          llvm::raw_string_ostream(name) << ref;
          stream
              << StringRef(name).drop_front(strlen("#rota.axis<")).drop_back();
        });
        stream << "]";
      };
      printAxes(step.axes);
      if (!step.order.empty())
        printAxes(step.order);
      stream << " : ";
      llvm::interleave(step.shape, stream, "x");
      stream << "\n";
    }
    return text;
  }

  MLIRContext context;
  ReshardPlan last;
};

TEST_F(ReshardPlannerTest, DoesNothingWhereNothingChanges) {
  EXPECT_EQ(plan({8, 8}, "data = 2", "[[data], []]", "[[data, ?], []]"), "");
  // An axis of size 1 divides nothing.
  EXPECT_EQ(plan({8, 8}, "data = 2", "[[data], [tensor]]", "[[data], []]"), "");
  // The two parts of an axis are the axis.
  EXPECT_EQ(plan({8, 8}, "tensor = 4", "[[tensor], []]",
                 "[[tensor:(1)2, tensor:(2)2], []]"),
            "");
}

TEST_F(ReshardPlannerTest, GathersAndCutsWholeRunsOfAxes) {
  EXPECT_EQ(
      plan({8, 8}, "data = 2, tensor = 4", "[[data, tensor], []]", "[[], []]"),
      "all_gather 0 [data, tensor] : 8x8\n");
  EXPECT_EQ(last.cost().bytes, 7 * 8 * 4);
  EXPECT_EQ(
      plan({8, 8}, "data = 2, tensor = 4", "[[], []]", "[[], [tensor, data]]"),
      "shard_slice 1 [tensor, data] : 8x1\n");
  EXPECT_EQ(last.cost().bytes, 0);
  EXPECT_EQ(last.cost().messages, 0);
}

TEST_F(ReshardPlannerTest, KeepsWhatStays) {
  EXPECT_EQ(plan({8, 8}, "data = 2, tensor = 4", "[[data, tensor], []]",
                 "[[data], []]"),
            "all_gather 0 [tensor] : 4x8\n");
  EXPECT_EQ(plan({8, 8}, "data = 2, tensor = 2", "[[data, tensor], []]",
                 "[[data], [tensor]]"),
            "all_to_all 0 to 1 [tensor] : 4x4\n");
}

TEST_F(ReshardPlannerTest, SendsTheFilledPartOfCountedRows) {
  constexpr const char *mesh = "expert = 2, tensor = 2";
  EXPECT_EQ(
      plan({4, 8, 4}, mesh, "[[expert], [], []]", "[[], [expert], []]", 0.25),
      "ragged all_to_all 0 to 1 [expert] : 4x4x4\n");
  EXPECT_EQ(last.cost().bytes, 4 * 2 * 8 * 4 / 2 / 4);
  // Other steps stand beside it; what moves other dimensions is not ragged.
  EXPECT_EQ(plan({4, 8, 4}, mesh, "[[], [expert], []] unreduced [tensor]",
                 "[[expert], [], []]", 0.25),
            "ragged all_to_all 1 to 0 [expert] : 2x8x4\n"
            "all_reduce [tensor] : 2x8x4\n");
  EXPECT_EQ(
      plan({4, 8, 4}, mesh, "[[], [], [expert]]", "[[], [expert], []]", 0.25),
      "all_to_all 2 to 1 [expert] : 4x4x4\n");
}

TEST_F(ReshardPlannerTest, ReducesOverAllAxesAtOnce) {
  EXPECT_EQ(plan({8, 8}, "data = 2, tensor = 4",
                 "[[], []] unreduced [tensor, data]", "[[], []]"),
            "all_reduce [data, tensor] : 8x8\n");
  EXPECT_EQ(last.cost().bytes, 2 * 7 * 32);
  EXPECT_EQ(plan({8, 8}, "data = 2, tensor = 4",
                 "[[], []] unreduced [data, tensor]",
                 "[[], []] unreduced [data]"),
            "all_reduce [tensor] : 8x8\n");
}

TEST_F(ReshardPlannerTest, ScattersWhereItWouldReduceAndCut) {
  EXPECT_EQ(plan({8, 8}, "tensor = 4", "[[], []] unreduced [tensor]",
                 "[[], [tensor]]"),
            "reduce_scatter 1 [tensor] : 8x2\n");
  EXPECT_EQ(last.cost().bytes, 3 * 64);
  EXPECT_EQ(plan({8, 8}, "data = 2, tensor = 4",
                 "[[data], []] unreduced [tensor]", "[[data, tensor], []]"),
            "reduce_scatter 0 [tensor] : 1x8\n");
  EXPECT_EQ(plan({8, 8}, "data = 2, tensor = 4",
                 "[[], []] unreduced [data, tensor]", "[[tensor, data], []]"),
            "reduce_scatter 0 [tensor, data] : 1x8\n");
}

TEST_F(ReshardPlannerTest, CutsBeforeItReduces) {
  EXPECT_EQ(plan({8, 8}, "data = 2, tensor = 4", "[[], []] unreduced [tensor]",
                 "[[data], []]"),
            "shard_slice 0 [data] : 4x8\nall_reduce [tensor] : 4x8\n");
}

TEST_F(ReshardPlannerTest, MovesADivisionToAnotherDimension) {
  EXPECT_EQ(plan({8, 8}, "tensor = 4", "[[tensor], []]", "[[], [tensor]]"),
            "all_to_all 0 to 1 [tensor] : 8x2\n");
  // The new axis is cut first where that can travel along.
  EXPECT_EQ(plan({8, 8}, "data = 2, tensor = 4", "[[], [data]]",
                 "[[data, tensor], []]"),
            "shard_slice 1 [tensor] : 8x1\nall_to_all 1 to 0 [data, tensor] : "
            "1x8\n");
  EXPECT_EQ(plan({8, 8}, "data = 2, tensor = 4", "[[], [data]]",
                 "[[tensor, data], []]"),
            "shard_slice 0 [tensor] : 2x4\nall_to_all 1 to 0 [data] : 1x8\n");
}

TEST_F(ReshardPlannerTest, PermutesWhereEveryPartExists) {
  EXPECT_EQ(plan({8, 8}, "data = 2, tensor = 4", "[[data, tensor], []]",
                 "[[tensor, data], []]"),
            "permute [data, tensor] [tensor, data] : 1x8\n");
  EXPECT_EQ(plan({8, 8}, "data = 2, tensor = 2", "[[data], [tensor]]",
                 "[[tensor], [data]]"),
            "permute [data, tensor] [tensor, data] : 4x4\n");
  // One copy of each part becomes one of another.
  EXPECT_EQ(
      plan({8, 8}, "data = 4, tensor = 4", "[[data], []]", "[[tensor], []]"),
      "permute [data, tensor] [tensor, data] : 2x8\n");
  // An axis that does not move is not in the group.
  EXPECT_EQ(plan({16, 8}, "data = 2, fsdp = 2, tensor = 2",
                 "[[fsdp, data, tensor], []]", "[[fsdp, tensor, data], []]"),
            "permute [data, tensor] [tensor, data] : 2x8\n");
}

TEST_F(ReshardPlannerTest, SplitsAxes) {
  EXPECT_EQ(plan({8, 8}, "tensor = 4", "[[tensor], []]", "[[tensor:(1)2], []]"),
            "all_gather 0 [tensor:(2)2] : 4x8\n");
  EXPECT_EQ(plan({8, 8}, "tensor = 4", "[[tensor], []]",
                 "[[tensor:(1)2], [tensor:(2)2]]"),
            "all_to_all 0 to 1 [tensor:(2)2] : 4x4\n");
  EXPECT_EQ(plan({8, 8}, "tensor = 4", "[[tensor:(2)2, tensor:(1)2], []]",
                 "[[tensor], []]"),
            "permute [tensor:(2)2, tensor:(1)2] [tensor:(1)2, tensor:(2)2] : "
            "2x8\n");
  // Parts that cross have no common parts.
  EXPECT_EQ(plan({12}, "tensor = 6", "[[tensor:(1)2]]", "[[tensor:(1)3]]"),
            "all_gather 0 [tensor:(1)2] : 12\nshard_slice 0 [tensor:(1)3] : "
            "4\n");
}

TEST_F(ReshardPlannerTest, TakesUnevenPartsAsTheyAre) {
  EXPECT_EQ(plan({10}, "data = 4", "[[data]]", "[[]]"),
            "all_gather 0 [data] : 10\n");
  // 10 in 6 parts is 2 2 2 2 2 0, in 2 parts 5 5: gathering `tensor` alone
  // would give 6 and 4.
  EXPECT_EQ(plan({10}, "data = 2, tensor = 3", "[[data, tensor]]", "[[data]]"),
            "all_gather 0 [data, tensor] : 10\nshard_slice 0 [data] : 5\n");
  EXPECT_EQ(plan({10}, "data = 2, tensor = 3", "[[]]", "[[data, tensor]]"),
            "shard_slice 0 [data, tensor] : 2\n");
  // All-to-all would need ranks that divide.
  EXPECT_EQ(plan({10, 6}, "data = 4", "[[data], []]", "[[], [data]]"),
            "all_gather 0 [data] : 10x6\nshard_slice 1 [data] : 10x2\n");
}

TEST_F(ReshardPlannerTest, WeighsAMessageAgainstItsBytes) {
  EXPECT_EQ(
      plan({8, 8}, "data = 2, tensor = 8", "[[tensor], []]", "[[data], []]"),
      "all_gather 0 [tensor] : 8x8\nshard_slice 0 [data] : 4x8\n");
  // If bytes dominate the cost, half as many in two messages.
  EXPECT_EQ(plan({4096, 4096}, "data = 2, tensor = 8", "[[tensor], []]",
                 "[[data], []]"),
            "shard_slice 0 [data] : 256x4096\n"
            "permute [tensor, data] [data, tensor] : 256x4096\n"
            "all_gather 0 [tensor] : 2048x4096\n");
}

TEST_F(ReshardPlannerTest, CombinesMoves) {
  EXPECT_EQ(plan({4096, 4096}, "data = 2, fsdp = 8, tensor = 8",
                 "[[data, fsdp], [tensor]]", "[[tensor], [fsdp]]"),
            "permute [data, fsdp, tensor] [tensor, data, fsdp] : 256x512\n"
            "all_gather 0 [data] : 512x512\n");
  EXPECT_EQ(plan({64, 64, 64}, "data = 2, tensor = 2", "[[data], [tensor], []]",
                 "[[], [], [data]]"),
            "all_to_all 0 to 2 [data] : 64x32x32\n"
            "all_gather 1 [tensor] : 64x64x32\n");
}

TEST_F(ReshardPlannerTest, StaysDirectWhereAxesAreTooMany) {
  EXPECT_EQ(plan({4096, 4096, 4096, 64},
                 "data = 2, fsdp = 4, expert = 2, context = 8, sequence = 2, "
                 "tensor = 2",
                 "[[data, fsdp], [expert], [], []]",
                 "[[tensor, context], [sequence], [fsdp], [expert, data]]"),
            "all_to_all 1 to 3 [expert] : 512x4096x4096x32\n"
            "shard_slice 1 [sequence] : 512x2048x4096x32\n"
            "all_to_all 0 to 2 [fsdp] : 2048x2048x1024x32\n"
            "all_to_all 0 to 3 [data] : 4096x2048x1024x16\n"
            "shard_slice 0 [tensor, context] : 256x2048x1024x16\n");
}

} // namespace
