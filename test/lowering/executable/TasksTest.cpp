// SPDX-License-Identifier: Apache-2.0
//
// Tasks, parameters and collectives of models whose functions hold local
// shapes.
#include "test/lowering/executable/LoweredModel.h"

#include <gtest/gtest.h>

using namespace rota;
using namespace rota::test;

namespace {

using Kind = Collective::Kind;

size_t count(const std::string &text, const std::string &part) {
  size_t found = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at)
    ++found;
  return found;
}

TEST(Tasks, MeshWithoutAxesOfSizeOne) {
  Lowered model;
  ASSERT_EQ(model.errors, "");
  std::vector<std::pair<std::string, int64_t>> axes;
  for (const MeshAxis &axis : model.program().mesh)
    axes.emplace_back(axis.name, axis.size);
  EXPECT_EQ(axes, (std::vector<std::pair<std::string, int64_t>>{
                      {"data", 2}, {"stage", 1}, {"fsdp", 2}, {"tensor", 4}}));
}

TEST(Tasks, PartsOfAnAxisAreAxes) {
  Lowered model({{"all_reduce sum %p axes [<tensor>] reason \"'z'",
                  "all_reduce sum %p axes [<tensor:(2)2>] reason \"'z'"}});
  ASSERT_EQ(model.errors, "");
  const auto &mesh = model.program().mesh;
  ASSERT_EQ(mesh.size(), 5u);
  EXPECT_EQ(mesh[3].name, "tensor:(1)2");
  EXPECT_EQ(mesh[4].name, "tensor:(2)2");
  EXPECT_EQ(mesh[3].size * mesh[4].size, 4);
  EXPECT_EQ(model.parameter(0).computeDivision, (Division{{}, {3, 4}}));
  for (const Collective &c : model.program().collectives)
    if (c.reason == "'z' is a sum over 'tensor'") {
      EXPECT_EQ(c.axes, std::vector<int>{4});
    }
}

TEST(Tasks, PartsOfAnAxisMustFitTogether) {
  Lowered model({{"tensor = 4", "tensor = 12"},
                 {"all_reduce sum %p axes [<tensor>] reason \"'z'",
                  "all_reduce sum %p axes [<tensor:(1)2>] reason \"'z'"},
                 {"all_reduce sum %p axes [<tensor>] reason \"'dx'",
                  "all_reduce sum %p axes [<tensor:(1)3>] reason \"'dx'"},
                 {"[tensor]", "[tensor:(1)4]"},
                 {"reduce_scatter %q dim = 1 axes [<tensor>]",
                  "shard_slice %q dim = 1 axes [<data>, <fsdp>]"},
                 {"all_gather %s dim = 1 axes [<tensor>]",
                  "all_gather %s dim = 1 axes [<data>, <fsdp>]"}});
  EXPECT_NE(model.errors.find(
                "expected parts of axis 'tensor' of size 12 whose borders "
                "divide each other, got borders at 2 and 3"),
            std::string::npos)
      << model.errors;
}

TEST(Tasks, DataFormsAreWhole) {
  Lowered model;
  for (const DataForm &form : {model.program().input, model.program().target}) {
    EXPECT_EQ(form.shape, (std::vector<int64_t>{8, 8}));
    EXPECT_EQ(form.division, (Division{{0, 2}, {}}));
  }
  EXPECT_EQ(model.program().lossAxes, (std::vector<int>{0, 2}));
  EXPECT_EQ(model.program().parameterCount, 2 * 2 * 64);
}

TEST(Tasks, CollectivesAreStartedAndWaitedFor) {
  Lowered model;
  auto numberOf = [&](llvm::StringRef reason) {
    const auto &list = model.program().collectives;
    return int(
        llvm::find_if(list,
                      [&](const Collective &c) { return c.reason == reason; }) -
        list.begin());
  };
  int sum = numberOf("'z' is a sum over 'tensor'");
  int scatter = numberOf("'s' is a sum over 'tensor'");
  int gather = numberOf("'t' is whole");
  for (auto [number, kind, outer, size] :
       {std::tuple{sum, Kind::AllReduce, 1, 16},
        {scatter, Kind::ReduceScatter, 2, 8},
        {gather, Kind::AllGather, 2, 8}}) {
    const Collective &c = model.collective(number);
    EXPECT_EQ(c.kind, kind);
    EXPECT_EQ(c.axes, std::vector<int>{3});
    EXPECT_EQ(c.outer, outer);
    EXPECT_EQ(c.size, size);
    EXPECT_EQ(c.inner, 1);
  }
  std::string text = model.task("a.forward");
  EXPECT_EQ(count(text, "@rotaStartCollective"), 3u);
  EXPECT_EQ(count(text, "@rotaWaitCollective"), 3u);
}

/// A permute of scratch, in front of the products, and its use behind them.
const Changes withPermute = {
    {"%u = rota.read @up : tensor<8x2xf32>\n      %d = rota.read @down : "
     "tensor<2x8xf32>\n      %y",
     "%u = rota.read @up : tensor<8x2xf32>\n      %e = arith.addf %x, %x : "
     "tensor<2x8xf32>\n      %w = rota.permute %e axes [<tensor>] order "
     "[<tensor>] shift = 3 reason \"ring\" : tensor<2x8xf32>\n      %d = "
     "rota.read @down : tensor<2x8xf32>\n      %y"},
    {"%t = rota.all_gather %s dim = 1 axes [<tensor>] reason \"'t' is whole\" "
     ": "
     "tensor<2x2xf32> -> tensor<2x8xf32>",
     "%g = rota.all_gather %s dim = 1 axes [<tensor>] reason \"'t' is whole\" "
     ": "
     "tensor<2x2xf32> -> tensor<2x8xf32>\n      %t = arith.addf %g, %w : "
     "tensor<2x8xf32>"}};

TEST(Tasks, PermutesRunUntilTheirFirstUse) {
  Lowered model(withPermute);
  ASSERT_EQ(model.errors, "");
  std::string text = model.task("a.forward");
  EXPECT_EQ(count(text, "@rotaStartCollective"), 4u);
  EXPECT_EQ(count(text, "@rotaWaitCollective"), 4u);
  // The permute is started first, and waited for last: after all others.
  EXPECT_LT(text.find("@rotaStartCollective"), text.find("@rotaGemm"));
  EXPECT_GT(text.rfind("@rotaWaitCollective"),
            text.rfind("@rotaStartCollective"));
  const auto &list = model.program().collectives;
  EXPECT_TRUE(llvm::any_of(list, [](const Collective &c) {
    return c.kind == Kind::Permute && c.shift == 3;
  }));
}

/// `e` stands in scratch until `w` is there: none of `w`, `q` and `s` takes its
/// place.
TEST(Tasks, OperandsOfPermutesStayUntilTheWait) {
  Lowered model(withPermute);
  ASSERT_EQ(model.errors, "");
  EXPECT_EQ(model.layout.scratchBytes[model.layout.kinds[0].forward], 4 * 64);
}

/// An all-reduce takes the place of its operand in scratch, and runs until its
/// first use: none of `q` and `s` takes that place.
TEST(Tasks, AllReducesInScratchAreInPlace) {
  Changes changes = withPermute;
  changes.push_back(
      {"rota.permute %e axes [<tensor>] order [<tensor>] shift = 3",
       "rota.all_reduce sum %e axes [<tensor>]"});
  Lowered model(changes);
  ASSERT_EQ(model.errors, "");
  EXPECT_EQ(model.layout.scratchBytes[model.layout.kinds[0].forward], 3 * 64);
}

/// `x` in two pieces of one row, whose sums are put together as `t`.
const Changes withPieces = {
    {"%t = rota.all_gather %s dim = 1 axes [<tensor>] reason \"'t' is whole\" "
     ": tensor<2x2xf32> -> tensor<2x8xf32>",
     "%w = arith.constant dense<2.0> : tensor<8x16xf32>\n      %a, %b = "
     "rota.split %x dim = 0 : (tensor<2x8xf32>) -> (tensor<1x8xf32>, "
     "tensor<1x8xf32>)\n      %m = rota.einsum \"bk,kn->bn\" %a, %w : "
     "(tensor<1x8xf32>, tensor<8x16xf32>) -> tensor<1x16xf32>\n      %f = "
     "rota.all_reduce sum %m axes [<tensor>] reason \"piece\" : "
     "tensor<1x16xf32>\n      %n = rota.einsum \"bk,kn->bn\" %b, %w : "
     "(tensor<1x8xf32>, tensor<8x16xf32>) -> tensor<1x16xf32>\n      %g = "
     "rota.all_reduce sum %n axes [<tensor>] reason \"piece\" : "
     "tensor<1x16xf32>\n      %c = rota.concat %f, %g dim = 0 : "
     "(tensor<1x16xf32>, tensor<1x16xf32>) -> tensor<2x16xf32>\n      %t = "
     "rota.einsum \"bn,kn->bk\" %c, %w : (tensor<2x16xf32>, "
     "tensor<8x16xf32>) -> tensor<2x8xf32>"}};

/// The sum of the first piece has the second product beside it. Both are where
/// the whole is, 128 bytes of scratch beside the 512 of the constant, and
/// nothing copies them. The second piece of `x` would begin where no buffer
/// may, so that two copies take 64 bytes each.
TEST(Tasks, PiecesLieWhereTheWholeIs) {
  Lowered model(withPieces);
  ASSERT_EQ(model.errors, "");
  std::string text = model.task("a.forward");
  size_t first = text.find("@rotaStartCollective", text.find("@kernel_split"));
  size_t wait = text.find("@rotaWaitCollective", first);
  EXPECT_GT(count(text.substr(first, wait - first), "@rotaGemm"), 0u);
  EXPECT_EQ(count(text, "@kernel_split"), 2u);
  EXPECT_EQ(model.layout.scratchBytes[model.layout.kinds[0].forward], 768);
}

/// Sum and operand are computed in the place of the function's result.
TEST(Tasks, AllReduceIsInPlace) {
  Lowered model;
  // Only `q` and `s` take scratch: 64 bytes each, `p` lies in the output.
  EXPECT_EQ(model.layout.scratchBytes[model.layout.kinds[0].forward], 128);
  EXPECT_EQ(model.layout.scratchBytes[model.layout.kinds[0].backward], 64);
}

TEST(Tasks, ResidualsThatRestOnTheHostStandApart) {
  Lowered model;
  const memory::TaskGroup &kind = model.layout.kinds[0];
  EXPECT_EQ(kind.offloadedBytes, 64);    // %y
  EXPECT_EQ(kind.residualBytes, 3 * 64); // %t, %o and %v
}

TEST(Tasks, OffsetsOfPartsStandOnce) {
  Lowered model;
  const auto &offsets = model.layout.shardOffsets;
  ASSERT_EQ(offsets.size(), 2u);
  EXPECT_EQ(offsets[0].axes, std::vector<int>{3});
  EXPECT_EQ(offsets[0].factor, 8);
  EXPECT_EQ(offsets[1].factor, 16);
  EXPECT_EQ(model.layout.constantBytes, 128);
}

/// Constants that no kernel has inside lie where the runtime writes them.
/// Forward observes counts, and backward reads their mean, of that many
/// columns.
static Lowered withMean(int columns) {
  std::string read = R"(%m = rota.observed_mean "load" : tensor<2xf32>
      %b = rota.broadcast %m dims [1] : tensor<2xf32> -> tensor<2x2xf32>
      %dw = rota.einsum "bn,kn->bk" %dz, %d : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x2xf32>
      %dy = arith.mulf %dw, %b : tensor<2x2xf32>)";
  std::string type = "tensor<2x" + std::to_string(columns) + "xi32>";
  std::string observe = "%c = arith.constant dense<1> : " + type +
                        "\n rota.observe \"load\" %c : " + type +
                        "\n return %z,  %y";
  return Lowered(
      {{"%dy = rota.einsum \"bn,kn->bk\" %dz, %d : (tensor<2x8xf32>, "
        "tensor<2x8xf32>) -> tensor<2x2xf32>",
        read},
       {"return %z, %y", observe}});
}

TEST(Tasks, MeansLieBehindTheTablesOfForward) {
  Lowered good = withMean(2);
  ASSERT_EQ(good.errors, "");
  ASSERT_EQ(good.program().observations.size(), 1u);
  EXPECT_EQ(good.program().observations[0],
            (Observation{"load", 2, 2, 1, 0, /*isAveraged=*/true}));
  EXPECT_EQ(good.layout.kinds[0].observations, std::vector<int>{0});
  Lowered bad = withMean(3);
  EXPECT_NE(bad.errors.find("expected the layer's forward to observe counts of "
                            "2 columns as 'load'"),
            std::string::npos)
      << bad.errors;
}

TEST(Tasks, ConstantTensorsStandOnce) {
  Lowered model({{"return %x : tensor<2x8xf32>\n}\nfunc.func @embed_backward",
                  R"(%k = arith.constant dense<[[1.0, -2.0]]> : tensor<1x2xf32>
  %l = arith.constant dense<[[1.0], [-2.0]]> : tensor<2x1xf32>
  %m = arith.constant dense<[[3.0, 4.0]]> : tensor<1x2xf32>
  %0 = rota.einsum "ak,kn->an" %k, %x : (tensor<1x2xf32>, tensor<2x8xf32>) -> tensor<1x8xf32>
  %1 = rota.einsum "ka,an->kn" %l, %0 : (tensor<2x1xf32>, tensor<1x8xf32>) -> tensor<2x8xf32>
  %2 = rota.einsum "ak,kn->an" %m, %1 : (tensor<1x2xf32>, tensor<2x8xf32>) -> tensor<1x8xf32>
  %3 = rota.einsum "ka,an->kn" %l, %2 : (tensor<2x1xf32>, tensor<1x8xf32>) -> tensor<2x8xf32>
  return %3 : tensor<2x8xf32>
}
func.func @embed_backward)"}});
  ASSERT_EQ(model.errors, "");
  const auto &tensors = model.program().constantTensors;
  ASSERT_EQ(tensors.size(), 2u);
  const float numbers[] = {1.0f, -2.0f, 3.0f, 4.0f};
  auto bytes = reinterpret_cast<const char *>(numbers);
  EXPECT_EQ(tensors[0].bytes, std::string(bytes, 8));
  EXPECT_EQ(tensors[1].bytes, std::string(bytes + 8, 8));
  EXPECT_EQ(tensors[1].offset - tensors[0].offset, 64);
}

TEST(Parameters, WindowsAndZeRO) {
  Lowered model;
  const Parameter &up = model.parameter(0), &down = model.parameter(1);
  EXPECT_EQ(up.shape, (std::vector<int64_t>{8, 8}));
  EXPECT_EQ(up.computeDivision, (Division{{}, {3}}));
  EXPECT_EQ(up.storageDivision, (Division{{2}, {3}}));
  EXPECT_EQ(up.optimizerDivision, (Division{{2, 0}, {3}}));
  EXPECT_EQ(up.rows, 2);
  EXPECT_EQ(down.rows, 2); // [8/4, 8/2]

  const Collective &unshard = model.collective(up.unshard);
  EXPECT_EQ(unshard.kind, Kind::AllGather);
  EXPECT_EQ(unshard.axes, std::vector<int>{2});
  EXPECT_EQ(unshard.outer, 1);
  EXPECT_EQ(unshard.size, 8);
  EXPECT_EQ(unshard.inner, 2);
  EXPECT_EQ(unshard.reason, "gathers 'layers.{layer}.up'");
  const Collective &scatter = model.collective(up.reduceGrad);
  EXPECT_EQ(scatter.kind, Kind::ReduceScatter);
  EXPECT_EQ(scatter.axes, std::vector<int>{2});
  EXPECT_TRUE(scatter.accumulate);

  // The rest of the sum goes with the optimizer's part.
  ASSERT_EQ(up.reduce.size(), 1u);
  const Collective &reduce = model.collective(up.reduce[0]);
  EXPECT_EQ(reduce.kind, Kind::ReduceScatter);
  EXPECT_EQ(reduce.axes, std::vector<int>{0});
  EXPECT_FALSE(reduce.accumulate);
  EXPECT_EQ(reduce.size, 4);
  EXPECT_EQ(reduce.inner, 2);
  EXPECT_EQ(model.collective(up.refresh).kind, Kind::AllGather);
  EXPECT_EQ(model.collective(up.refresh).axes, std::vector<int>{0});

  ASSERT_EQ(down.reduce.size(), 1u);
  const Collective &sum = model.collective(down.reduce[0]);
  EXPECT_EQ(sum.kind, Kind::AllReduce);
  EXPECT_EQ(sum.axes, std::vector<int>{0});
  EXPECT_EQ(sum.size, 2 * 4);
  EXPECT_EQ(down.refresh, -1);
}

/// One parameter is stored whole: it is copied into the window all the same.
TEST(Parameters, WindowsHoldWhatIsNotDivided) {
  Lowered model({{"storage <[[tensor], [fsdp]]> optimizer <[[tensor], [fsdp]]>",
                  "storage <[[tensor], []]> optimizer <[[tensor], []]>"}});
  ASSERT_EQ(model.errors, "");
  const Parameter &down = model.parameter(1);
  EXPECT_TRUE(model.collective(down.unshard).axes.empty());
  EXPECT_EQ(model.collective(down.unshard).size, 16);
  EXPECT_TRUE(model.collective(down.reduceGrad).axes.empty());
  ASSERT_EQ(down.reduce.size(), 1u);
  EXPECT_EQ(model.collective(down.reduce[0]).axes, (std::vector<int>{0, 2}));
}

TEST(Parameters, NothingIsGatheredWithoutFsdp) {
  Lowered model({{"storage <[[fsdp], [tensor]]> optimizer <[[fsdp, data], "
                  "[tensor]]>",
                  "storage <[[], [tensor]]> optimizer <[[data], [tensor]]>"},
                 {"storage <[[tensor], [fsdp]]> optimizer <[[tensor], [fsdp]]>",
                  "storage <[[tensor], []]> optimizer <[[tensor], []]>"}});
  ASSERT_EQ(model.errors, "");
  const Parameter &up = model.parameter(0);
  EXPECT_EQ(up.unshard, -1);
  EXPECT_EQ(up.reduceGrad, -1);
  ASSERT_EQ(up.reduce.size(), 2u);
  EXPECT_EQ(model.collective(up.reduce[0]).kind, Kind::AllReduce);
  EXPECT_EQ(model.collective(up.reduce[0]).axes, std::vector<int>{2});
  EXPECT_EQ(model.collective(up.reduce[1]).kind, Kind::ReduceScatter);
}

/// The gradient is the same along `data`: the optimizer's part is cut off it.
TEST(Parameters, OptimizerPartOfAWholeGradientIsASlice) {
  Lowered model({{"[[], [tensor]] unreduced [data, fsdp]",
                  "[[], [tensor]] unreduced [fsdp]"}});
  ASSERT_EQ(model.errors, "");
  const Parameter &up = model.parameter(0);
  ASSERT_EQ(up.reduce.size(), 1u);
  EXPECT_EQ(model.collective(up.reduce[0]).kind, Kind::Slice);
}

/// A sum over a part of these axes, and too small for parts in place: it is
/// made whole, and the part is cut off it.
TEST(Parameters, PartlySummedGradientIsSummedAndCut) {
  Lowered model({{"compute <[[], [tensor]] unreduced [data, fsdp]> storage "
                  "<[[fsdp], [tensor]]> optimizer <[[fsdp, data], [tensor]]>",
                  "compute <[[], [tensor]] unreduced [data]> storage "
                  "<[[], [tensor]]> optimizer <[[data, fsdp], [tensor]]>"}});
  ASSERT_EQ(model.errors, "");
  const Parameter &up = model.parameter(0);
  ASSERT_EQ(up.reduce.size(), 2u);
  EXPECT_EQ(model.collective(up.reduce[0]).kind, Kind::AllReduce);
  EXPECT_EQ(model.collective(up.reduce[0]).axes, std::vector<int>{0});
  EXPECT_EQ(model.collective(up.reduce[1]).kind, Kind::Slice);
  EXPECT_EQ(model.collective(up.reduce[1]).axes, (std::vector<int>{0, 2}));
}

/// Products add to accumulators of bf16, and all transfers have their type.
TEST(Parameters, GradientsHaveTheTypeOfTheirAccumulators) {
  Lowered model({{"[tensor]]>>\n    rota.param @down",
                  "[tensor]]>> {rota.gradient = bf16}\n    rota.param @down"}});
  ASSERT_EQ(model.errors, "");
  const Parameter &up = model.parameter(0), &down = model.parameter(1);
  EXPECT_EQ(up.gradient, ElementType::BF16);
  EXPECT_EQ(model.collective(up.reduceGrad).type, ElementType::BF16);
  EXPECT_EQ(model.collective(up.reduce[0]).type, ElementType::BF16);
  EXPECT_EQ(model.collective(up.refresh).type, ElementType::F32);
  EXPECT_EQ(down.gradient, ElementType::F32);
  // 8 x 2 elements of bf16 and 2 x 8 of f32, each in blocks of 64 bytes.
  EXPECT_EQ(model.layout.kinds[0].block.gradientBytes, 128);
  EXPECT_EQ(model.layout.kinds[0].block.entries[1].gradient, 64);
  EXPECT_EQ(count(model.task("a.backward"), "@rotaLaunch"), 0u);
}

void expectError(const Changes &changes, llvm::StringRef message) {
  Lowered model(changes);
  EXPECT_NE(model.errors.find(message), std::string::npos) << model.errors;
}

TEST(Parameters, FunctionsMustSeeParts) {
  expectError({{"whole [8, 8] compute <[[], [tensor]]",
                "whole [8, 2] compute <[[], [tensor]]"}},
              "expected the type of one rank's part of 'up', which 'partition' "
              "gives it, got 'tensor<8x2xf32>'");
}

TEST(Parameters, GradientMustBeASumOverWhatDividesStorage) {
  expectError({{"[[], [tensor]] unreduced [data, fsdp]",
                "[[], [tensor]] unreduced [data]"}},
              "expected the gradient of 'up' to be a sum over axis 'fsdp', "
              "which divides its storage further than functions see it");
}

/// Functions of `up`, of which the optimizer has [2, 2] elements; @update is
/// `update`.
Changes withUpdate(const std::string &update) {
  static std::string functions;
  functions = "return %offset : tensor<i32>\n} // logits\n" + update + R"(
func.func @squares(%g: tensor<2x2xf32>) -> tensor<2xf32> {
  %s = arith.mulf %g, %g : tensor<2x2xf32>
  %sum = rota.reduce sum %s dims [1] : tensor<2x2xf32> -> tensor<2xf32>
  return %sum : tensor<2xf32>
}
)";
  return {{"[tensor]]>>\n    rota.param @down",
           "[tensor]]>> {rota.squares = @squares, rota.update = @update}\n"
           "    rota.param @down"},
          {"return %offset : tensor<i32>\n}\n", functions}};
}

constexpr const char *kMomentum = R"(
func.func @update(%p: tensor<2x2xf32>, %g: tensor<2x2xf32>, %lr: tensor<f32> {rota.scalar = #rota.scalar<learning_rate>}, %m: tensor<2x2xf32> {rota.state = #rota.state<name = "momentum", initial = 0.5>}) -> (tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>) {
  %zero = arith.constant dense<0.0> : tensor<2x2xf32>
  %rate = rota.broadcast %lr dims [] : tensor<f32> -> tensor<2x2xf32>
  %n = arith.addf %m, %g : tensor<2x2xf32>
  %step = arith.mulf %rate, %n : tensor<2x2xf32>
  %q = arith.subf %p, %step : tensor<2x2xf32>
  return %q, %n, %zero : tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>
}
)";

TEST(Updates, AreOneKernelInPlace) {
  Lowered model(withUpdate(kMomentum));
  ASSERT_EQ(model.errors, "");
  const Parameter &up = model.parameter(0);
  EXPECT_EQ(up.rows, 2);
  ASSERT_EQ(up.states.size(), 1u);
  EXPECT_EQ(up.states[0].name, "momentum");
  EXPECT_EQ(up.states[0].initial, 0.5);
  EXPECT_EQ(up.stateBytes, 64);
  EXPECT_EQ(model.parameter(1).updateTask, -1);
  ASSERT_EQ(model.program().scalars.size(), 1u);
  EXPECT_EQ(model.program().scalars[0].kind, Scalar::Kind::LearningRate);
  EXPECT_EQ(model.program().tasks.at(up.updateTask), "update");
  EXPECT_EQ(model.program().tasks.at(up.squareTask), "squares");
  for (const char *task : {"update", "squares"}) {
    EXPECT_EQ(count(model.task(task), "@rotaLaunch"), 1u) << task;
    EXPECT_EQ(count(model.task(task), "@rotaCopy"), 0u) << task;
  }
  EXPECT_EQ(model.layout.scratchBytes[up.updateTask], 0);
}

/// An update does not overwrite values that a later op or a result still reads.
TEST(Updates, KeepWhatIsReadLater) {
  Lowered model(withUpdate(R"(
func.func @update(%p: tensor<2x2xf32>, %g: tensor<2x2xf32>, %last: tensor<2x2xf32> {rota.state = #rota.state<name = "last", initial = 0.0>}) -> (tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>) {
  %zero = arith.constant dense<0.0> : tensor<2x2xf32>
  %n = arith.addf %last, %p : tensor<2x2xf32>
  %m = rota.einsum "ij,jk->ik" %n, %p : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %q = rota.einsum "ij,jk->ik" %m, %last : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  return %q, %g, %zero : tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>
}
)"));
  ASSERT_EQ(model.errors, "");
  std::string task = model.task("update");
  EXPECT_EQ(count(task, "@rotaGemm"), 2u);
  // The gradient becomes the state, then zero; the parameter dies before %q.
  EXPECT_EQ(count(task, "@rotaCopy"), 2u);
}

TEST(Updates, MayNotExchangeArguments) {
  expectError(withUpdate(R"(
func.func @update(%p: tensor<2x2xf32>, %g: tensor<2x2xf32>, %m: tensor<2x2xf32> {rota.state = #rota.state<name = "m", initial = 0.0>}) -> (tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>) {
  return %m, %p, %g : tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>
}
)"),
              "expected result 1 not to be an argument that result 0 "
              "overwrites");
}

TEST(Updates, AreOfTheOptimizersPart) {
  std::string update = kMomentum;
  for (size_t at; (at = update.find("2x2")) != std::string::npos;)
    update.replace(at, 3, "2x4");
  expectError(withUpdate(update),
              "expected the optimizer's part of 'up' as argument 0, got "
              "'tensor<2x4xf32>'");
}

TEST(Updates, ReadOptionsOfTheModule) {
  std::string update = kMomentum;
  update.replace(update.find("<learning_rate>"), 15, "<option of \"rate\">");
  expectError(withUpdate(update),
              "expected 'rota.options' of the module to have 'rate'");
}

} // namespace
