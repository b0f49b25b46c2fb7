// SPDX-License-Identifier: Apache-2.0
//
// The times of work and transfers on a machine.
#include "ir/rota/cost/Machine.h"
#include "ir/rota/Rota.h"
#include "ir/rota/experts/Experts.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"

#include <cmath>

using namespace mlir::rota;

namespace {

/// Four units of one operation a second, which compute tiles of 2 by 2; nodes
/// of two devices, which send four bytes a second within and one to others.
Machine smallMachine() {
  Machine machine;
  machine.units = 4;
  machine.types["bf16"].flopsPerSecond = 4;
  machine.tiles = {{2, 2, 1.0}};
  machine.network = {{"inside", 2, 4, 0.5, 1, 0}, {"outside", 0, 1, 3, 1, 0}};
  return machine;
}

TEST(Machine, AProductTakesWholeWavesOfTiles) {
  mlir::MLIRContext context;
  mlir::Type bf16 = mlir::BFloat16Type::get(&context);
  Machine machine = smallMachine();
  // Four tiles of 2 * 2 * 2 * 3 operations, at a time.
  EXPECT_EQ(machine.secondsOfProduct({1, 4, 4, 3}, bf16), 24);
  // A fifth and a sixth tile take another wave.
  EXPECT_EQ(machine.secondsOfProduct({1, 4, 6, 3}, bf16), 48);
  // Entries beside the result take time, too.
  EXPECT_EQ(machine.secondsOfProduct({1, 3, 3, 3}, bf16), 24);
  machine.depth = 1;
  EXPECT_EQ(machine.secondsOfProduct({1, 4, 4, 3}, bf16), 32);
  machine.productEfficiency = 0.5;
  EXPECT_EQ(machine.secondsOfProduct({1, 4, 4, 3}, bf16), 64);
}

TEST(Machine, TheBestTileIsTaken) {
  mlir::MLIRContext context;
  mlir::Type bf16 = mlir::BFloat16Type::get(&context);
  Machine machine = smallMachine();
  machine.tiles.push_back({4, 1, 0.75});
  // Two square tiles in a wave; four high ones in a wave, not eight square ones
  // in two.
  EXPECT_EQ(machine.secondsOfProduct({1, 4, 1, 3}, bf16), 24);
  EXPECT_EQ(machine.secondsOfProduct({4, 4, 1, 3}, bf16), 32);
}

TEST(Machine, MeasuredProductsSayTheRate) {
  mlir::MLIRContext context;
  mlir::Type bf16 = mlir::BFloat16Type::get(&context);
  Machine machine = smallMachine();
  machine.types["bf16"].products = {{{1, 4, 4, 4}, 2}, {{1, 1024, 4, 4}, 8}};
  EXPECT_NEAR(machine.secondsOfProduct({1, 4, 4, 4}, bf16), 128 / 2.0, 1e-3);
  double rate = 2 * 64 * 16 / machine.secondsOfProduct({1, 64, 4, 4}, bf16);
  EXPECT_NEAR(rate, 4, 1e-3); // between both, at equal distances
  // Beyond them: the nearest.
  rate = 2.0 * 4096 * 16 / machine.secondsOfProduct({1, 4096, 4, 4}, bf16);
  EXPECT_NEAR(rate, 8, 1e-3);
  EXPECT_NEAR(machine.secondsOfProduct({3, 4, 4, 2}, bf16), 192 / 2.0, 1e-3);
}

/// Seconds of each product of a function, in its order, with 100 operations a
/// second and what `set` changes of the rates.
std::vector<double>
secondsOfProducts(llvm::StringRef text, const MeasuredProduct &product,
                  llvm::function_ref<void(TypeRates &)> set) {
  mlir::MLIRContext context;
  context.loadDialect<RotaDialect, mlir::func::FuncDialect>();
  auto module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
  EXPECT_TRUE(module);
  Machine machine;
  machine.memoryBytesPerSecond = 1e12;
  machine.types["f32"].products = {product};
  set(machine.types["f32"]);
  std::vector<double> seconds;
  module->walk([&](mlir::Operation *op) {
    if (llvm::isa<EinsumOp, GroupedProductOp, GroupedProductGradOp>(op))
      seconds.push_back(machine.secondsOfOp(op));
  });
  return seconds;
}

TEST(Machine, ProductsOfExpertsTakeLongerThanOthers) {
  std::vector<double> seconds = secondsOfProducts(
      R"(
    func.func @f(%rows: tensor<2x32x8xf32>, %w: tensor<4x8x16xf32>, %counts: tensor<2x4xi32>) {
      %y = rota.grouped_product %rows, %w, %counts : (tensor<2x32x8xf32>, tensor<4x8x16xf32>, tensor<2x4xi32>) -> tensor<2x32x16xf32>
      %dw = rota.grouped_product_grad %rows, %y, %counts : (tensor<2x32x8xf32>, tensor<2x32x16xf32>, tensor<2x4xi32>) -> tensor<4x8x16xf32>
      return
    })",
      {{4, 16, 16, 8}, 100},
      [](TypeRates &rates) { rates.groupedSlower = 1.5; });
  ASSERT_EQ(seconds.size(), 2u);
  for (double each : seconds)
    EXPECT_NEAR(each, 1.5 * 2.0 * 64 * 8 * 16 / 100, 1e-6);
}

TEST(Machine, GradientsOfWeightsHaveRatesOfTheirOwn) {
  constexpr const char *text = R"(
    func.func @f(%x: tensor<2x32x8xf32>, %w: tensor<16x8xf32>) {
      %y = rota.einsum "bsd,fd->bsf" %x, %w : (tensor<2x32x8xf32>, tensor<16x8xf32>) -> tensor<2x32x16xf32>
      %dx = rota.einsum "bsf,fd->bsd" %y, %w : (tensor<2x32x16xf32>, tensor<16x8xf32>) -> tensor<2x32x8xf32>
      %dw = rota.einsum "bsf,bsd->fd" %y, %x : (tensor<2x32x16xf32>, tensor<2x32x8xf32>) -> tensor<16x8xf32>
      return
    })";
  MeasuredProduct usual{{1, 64, 16, 8}, 100};
  double slow = 2.0 * 64 * 16 * 8 / 50, fast = slow / 2;
  std::vector<double> seconds =
      secondsOfProducts(text, usual, [](TypeRates &rates) {
        rates.weightGradients = {{{1, 16, 8, 64}, 50}};
      });
  ASSERT_EQ(seconds.size(), 3u);
  EXPECT_NEAR(seconds[0], fast, 1e-6);
  EXPECT_NEAR(seconds[1], fast, 1e-6);
  EXPECT_NEAR(seconds[2], slow, 1e-6);
  // Without rates of their own they have those of products.
  for (double each : secondsOfProducts(text, usual, [](TypeRates &) {}))
    EXPECT_NEAR(each, fast, 1e-6);
}

// Of two ranks one sees the keys of the block before, and the other computes
// with it where they share the cores of a host.
TEST(Machine, CoresOfRanksWithoutWorkComputeForOthers) {
  mlir::MLIRContext context;
  context.loadDialect<RotaDialect, mlir::func::FuncDialect>();
  auto module = mlir::parseSourceString<mlir::ModuleOp>(R"(
    module {
      rota.mesh <context = 2>
      func.func @f(%q: tensor<2x16x4x8xf32>, %position: tensor<i32>, %line: tensor<2x4x16xf32>) {
        %o, %next = rota.attention %q, %q, %q previous %q, %line position %position behind = 1 scale = 0.35 : (tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>, tensor<2x4x16xf32>, tensor<i32>) -> (tensor<2x16x4x8xf32>, tensor<2x4x16xf32>)
        return
      }
    })",
                                                        &context);
  ASSERT_TRUE(module);
  Machine device, host;
  device.types["f32"].attentionForward = 1e9;
  host.types = device.types;
  host.cores = 2;
  int found = 0;
  module->walk([&](AttentionOp op) {
    ++found;
    EXPECT_NEAR(host.secondsOfOp(op) - host.launch,
                0.5 * (device.secondsOfOp(op) - device.launch), 1e-9);
  });
  EXPECT_EQ(found, 1);
}

TEST(Machine, RowsTakeElementsFunctionsAndOperations) {
  mlir::MLIRContext context;
  mlir::Type bf16 = mlir::BFloat16Type::get(&context);
  Machine machine = smallMachine();
  TypeRates &rates = machine.types["bf16"];
  rates.rowFlopsPerSecond = 10;
  Cost cost;
  cost.flops = 50, cost.specialFunctions = 10;
  cost.bytesRead = 24, cost.bytesWritten = 16; // 20 elements
  EXPECT_EQ(machine.secondsOfRows(cost, bf16), 50.0 / 10);
  rates.elementsPerSecond = 5;
  rates.specialFunctionsPerSecond = 2;
  EXPECT_EQ(machine.secondsOfRows(cost, bf16), 40.0 / 10 + 10.0 / 2 + 20.0 / 5);
  machine.cores = 2;
  EXPECT_EQ(machine.sharedBy(2).secondsOfRows(cost, bf16),
            2 * machine.secondsOfRows(cost, bf16));
  cost.roundings = 2; // of six operations each beside their own
  EXPECT_EQ(machine.secondsOfRows(cost, bf16), 52.0 / 10 + 10.0 / 2 + 20.0 / 5);
}

TEST(Machine, RanksWaitForTheSlowestCore) {
  mlir::MLIRContext context;
  mlir::Type f32 = mlir::Float32Type::get(&context);
  Machine machine = smallMachine();
  machine.cores = 4;
  machine.slowestCore = 1.5;
  Cost cost;
  cost.flops = 50;
  double alone = machine.secondsOfRows(cost, f32);
  auto ofRanks = [&](int64_t ranks) {
    return machine.sharedBy(ranks).secondsOfRows(cost, f32) / alone;
  };
  EXPECT_EQ(ofRanks(1), 1); // a rank's cores share its work as they can
  EXPECT_DOUBLE_EQ(ofRanks(2), 2 * std::sqrt(1.5));
  EXPECT_DOUBLE_EQ(ofRanks(4), 4 * 1.5);
  EXPECT_EQ(ofRanks(8), 4); // others work while one waits
}

TEST(Machine, AGradientThatItsProductAddsHasNoPriceOfItsOwn) {
  mlir::MLIRContext context;
  context.loadDialect<RotaDialect, mlir::func::FuncDialect>();
  auto module = mlir::parseSourceString<mlir::ModuleOp>(R"(
    rota.param @a : tensor<8x4xf32> axes ["m", "n"] init #rota.constant<value = 1.0>
    rota.param @b : tensor<8x4xf32> axes ["m", "n"] init #rota.constant<value = 1.0>
    func.func @f(%x: tensor<2x8xf32>, %dy: tensor<2x4xf32>, %g: tensor<8x4xf32>) {
      %dw = rota.einsum "tm,tn->mn" %x, %dy : (tensor<2x8xf32>, tensor<2x4xf32>) -> tensor<8x4xf32>
      rota.accumulate @a, %dw : tensor<8x4xf32>
      rota.accumulate @b, %g : tensor<8x4xf32>
      return
    })",
                                                        &context);
  ASSERT_TRUE(module);
  Machine machine;
  machine.memoryBytesPerSecond = 1;
  std::vector<double> seconds;
  module->walk(
      [&](AccumulateOp op) { seconds.push_back(machine.secondsOfOp(op)); });
  // The other reads value and gradient, and writes the gradient.
  EXPECT_EQ(seconds, (std::vector<double>{0, 3 * 4 * 32}));
}

/// Functions that launch a kernel `minus` on rows of eight f32.
class LaunchModule {
public:
  explicit LaunchModule(const std::string &functions) {
    context.loadDialect<RotaDialect, mlir::func::FuncDialect,
                        mlir::arith::ArithDialect>();
    module = mlir::parseSourceString<mlir::ModuleOp>(R"(
    rota.kernel @minus operands [affine_map<(d0) -> (d0)>] results [#rota.result<row>] {
    ^bb0(%x: tensor<8xf32>):
      %y = arith.negf %x : tensor<8xf32>
      rota.yield %y : tensor<8xf32>
    })" + functions,
                                                     &context);
  }

  /// Seconds of the launches, in their order.
  std::vector<double> secondsOn(const Machine &machine) {
    std::vector<double> list;
    EXPECT_TRUE(module);
    if (module)
      module->walk(
          [&](LaunchOp op) { list.push_back(machine.secondsOfOp(op)); });
    return list;
  }

private:
  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

TEST(Machine, AnUpdateWritesOverWhatItReads) {
  LaunchModule launches(R"(
    func.func @update(%x: tensor<4x8xf32>, %rate: tensor<f32> {rota.scalar = #rota.scalar<learning_rate>}) -> tensor<4x8xf32> {
      %y = rota.launch @minus rows = 4 (%x) : (tensor<4x8xf32>) -> tensor<4x8xf32>
      return %y : tensor<4x8xf32>
    }
    func.func @other(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
      %y = rota.launch @minus rows = 4 (%x) : (tensor<4x8xf32>) -> tensor<4x8xf32>
      return %y : tensor<4x8xf32>
    })");
  Machine machine;
  machine.cores = 2;
  machine.memoryBytesPerSecond = 2;
  // A line is read before it is written: three transfers instead of the four
  // for three tensors in which the rate is measured.
  double tensor = 4 * 32, streamed = 3 * tensor * 3 / 4 / 2;
  EXPECT_EQ(launches.secondsOn(machine),
            (std::vector<double>{streamed, streamed}));
  machine.updatedPerSecond = 4;
  EXPECT_EQ(launches.secondsOn(machine),
            (std::vector<double>{2 * tensor / 4, streamed}));
  EXPECT_EQ(machine.sharedBy(2).updatedPerSecond, 2);
}

TEST(Machine, ACacheHoldsWhatAFunctionHasJustMade) {
  LaunchModule launches(R"(
    func.func @f(%x: tensor<4x8xf32>) -> tensor<2x2x8xf32> {
      %a = rota.launch @minus rows = 4 (%x) : (tensor<4x8xf32>) -> tensor<4x8xf32>
      %b = rota.launch @minus rows = 4 (%a) : (tensor<4x8xf32>) -> tensor<4x8xf32>
      %c = rota.launch @minus rows = 4 (%b) : (tensor<4x8xf32>) -> tensor<4x8xf32>
      %d = rota.reshape %c : tensor<4x8xf32> -> tensor<2x2x8xf32>
      %e = rota.launch @minus rows = 4 (%a) : (tensor<4x8xf32>) -> tensor<4x8xf32>
      return %d : tensor<2x2x8xf32>
    })");
  Machine machine;
  machine.cores = 2;
  machine.memoryBytesPerSecond = 2;
  double tensor = 4 * 32, cached = tensor / 8, read = tensor * 3 / 4 / 2;
  EXPECT_EQ(launches.secondsOn(machine), std::vector<double>(4, 3 * read));
  machine.cacheBytes = tensor, machine.cacheBytesPerSecond = 8;
  EXPECT_EQ(launches.secondsOn(machine),
            (std::vector<double>{read + cached, 2 * cached, cached + 2 * read,
                                 2 * cached}));
  // It is too small for what is written.
  machine.cacheBytes = tensor - 1;
  EXPECT_EQ(launches.secondsOn(machine),
            (std::vector<double>{3 * read, cached + 2 * read, cached + 2 * read,
                                 cached + 2 * read}));
  // Two tensors have been used since the first use of the last one's operand.
  machine.cacheBytes = 2 * tensor / 8 - 1;
  EXPECT_EQ(launches.secondsOn(machine),
            (std::vector<double>{3 * read, cached + 2 * read, cached + 2 * read,
                                 3 * read}));
}

TEST(Machine, AProductWritesWhatIsKeptToMemory) {
  mlir::MLIRContext context;
  context.loadDialect<RotaDialect, mlir::func::FuncDialect>();
  auto module = mlir::parseSourceString<mlir::ModuleOp>(R"(
    rota.param @w : tensor<4x8xf32> axes ["a", "b"] init #rota.constant<value = 0.0>
    func.func @f(%x: tensor<4x4xf32>, %y: tensor<4x8xf32>) -> tensor<4x8xf32> {
      %inner = rota.einsum "mk,kn->mn" %x, %y : (tensor<4x4xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
      %added = rota.einsum "mk,kn->mn" %x, %inner : (tensor<4x4xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
      rota.accumulate @w, %added : tensor<4x8xf32>
      %returned = rota.einsum "mk,kn->mn" %x, %inner : (tensor<4x4xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
      return %returned : tensor<4x8xf32>
    })",
                                                        &context);
  ASSERT_TRUE(module);
  auto seconds = [&](const Machine &machine) {
    std::vector<double> list;
    module->walk(
        [&](EinsumOp op) { list.push_back(machine.secondsOfKeeping(op)); });
    return list;
  };
  Machine machine;
  machine.memoryBytesPerSecond = 2;
  machine.cacheBytes = 1 << 20, machine.cacheBytesPerSecond = 8;
  EXPECT_EQ(seconds(machine), std::vector<double>(3, 0));
  machine.cores = 2;
  // A line is read before it is written.
  double kept = 2 * 4 * 32 * 3 / 4 / 2.0;
  EXPECT_EQ(seconds(machine), (std::vector<double>{0, kept, kept}));
  machine.cacheBytes = 0;
  EXPECT_EQ(seconds(machine), std::vector<double>(3, 0));
}

TEST(Machine, AQueryTakesMoreKeysThanItSees) {
  mlir::MLIRContext context;
  mlir::Type bf16 = mlir::BFloat16Type::get(&context);
  Machine machine = smallMachine();
  TypeRates &rates = machine.types["bf16"];
  rates.attentionForward = 10, rates.attentionBackward = 5;
  Cost forward, backward;
  forward.flops = backward.flops = 100;
  forward.form = WorkForm::Attention;
  backward.form = WorkForm::AttentionGradient;
  EXPECT_EQ(machine.secondsOfAttention(forward, 32, bf16), 10);
  rates.attentionForwardKeys = 8, rates.attentionBackwardKeys = 16;
  EXPECT_EQ(machine.secondsOfAttention(forward, 32, bf16), 10 * 1.25);
  EXPECT_EQ(machine.secondsOfAttention(backward, 32, bf16), 20 * 1.5);
  EXPECT_EQ(machine.secondsOfAttention(backward, 256, bf16), 20 * 1.0625);
}

TEST(Machine, ACollectiveCrossesTheLevelsThatItsGroupSpans) {
  Machine machine = smallMachine();
  MeshGroup pair{{{2, 1}}}, apart{{{2, 2}}}, all{{{4, 1}}};
  EXPECT_EQ(machine.secondsOfCollective(8, pair), 0.5 + 8 / 4.0);
  EXPECT_EQ(machine.secondsOfCollective(8, apart), 3 + 8 / 1.0);
  // Both devices of a node send to the other node.
  EXPECT_EQ(machine.secondsOfCollective(8, all), 0.5 + 3 + 8 / 2.0);
  EXPECT_EQ(machine.secondsOfCollective(8, MeshGroup()), 0);
  EXPECT_EQ(machine.levelOf(pair).name, "inside");
  EXPECT_EQ(machine.levelOf(apart).name, "outside");
}

TEST(Machine, RanksOfAHostShareItsCores) {
  Machine machine = smallMachine();
  machine.cores = 2;
  machine.memoryBytesPerSecond = 100;
  EXPECT_EQ(machine.sharedBy(2).types["bf16"].flopsPerSecond, 2);
  EXPECT_EQ(machine.sharedBy(2).memoryBytesPerSecond, 50);
  EXPECT_EQ(machine.sharedBy(8).types["bf16"].flopsPerSecond, 2);
  EXPECT_EQ(machine.sharedBy(1).types["bf16"].flopsPerSecond, 4);
}

TEST(Machine, SharingCostsLessTheMoreRanksThereAre) {
  mlir::MLIRContext context;
  mlir::Type bf16 = mlir::BFloat16Type::get(&context);
  Machine machine = smallMachine();
  machine.cores = 16;
  machine.launch = 1, machine.sharedLaunch = 4;
  ProductSize size{1, 8, 8, 8};
  TypeRates &rates = machine.types["bf16"];
  rates.products = {{size, 64}};
  rates.sharedProducts = {{size, 16}};
  auto secondsOf = [&](int64_t ranks) {
    return machine.sharedBy(ranks).secondsOfProduct(size, bf16);
  };
  EXPECT_DOUBLE_EQ(secondsOf(1), size.flops() / 16);
  // Four cores a rank: twice as long instead of four times.
  EXPECT_DOUBLE_EQ(secondsOf(4), 2 * size.flops() / (64 / 4));
  EXPECT_DOUBLE_EQ(secondsOf(16), size.flops() / (64 / 16));
  EXPECT_DOUBLE_EQ(secondsOf(64), secondsOf(16));
  // Larger products are divided; the others lie between, by their operations.
  ProductSize between{1, 16, 16, 16}, large{1, 32, 32, 32};
  rates.products.push_back({large, 64});
  rates.sharedProducts.push_back({large, 64});
  for (auto [each, slower] : {std::pair(ProductSize{1, 4, 4, 4}, 4.0),
                              {between, 2.5},
                              {large, 1.0},
                              {ProductSize{1, 64, 64, 64}, 1.0}})
    EXPECT_DOUBLE_EQ(machine.sharedBy(1).secondsOfProduct(each, bf16),
                     slower * each.flops() / 64);
  // Sizes in the middle say what sharing costs; one core alone may be sooner.
  rates.sharedProducts = {{size, 1}, {size, 16}, {size, 64}};
  EXPECT_DOUBLE_EQ(secondsOf(1), size.flops() / 16);
  rates.sharedProducts = {{size, 1}};
  EXPECT_DOUBLE_EQ(secondsOf(1), size.flops() / (64 / 16));
  // What slows a larger product down more than a smaller one is another
  // program.
  rates.sharedProducts = {{size, 32}, {large, 16}};
  EXPECT_DOUBLE_EQ(machine.sharedBy(1).secondsOfProduct(large, bf16),
                   2 * large.flops() / 64);
  EXPECT_EQ(machine.sharedBy(1).secondsOfKernel(8), 1 + 8 + 4);
  EXPECT_EQ(machine.sharedBy(4).secondsOfKernel(8), 1 + 8 + 2);
  EXPECT_EQ(machine.sharedBy(16).secondsOfKernel(8), 1 + 8);
  // One core alone is sooner.
  EXPECT_EQ(machine.sharedBy(4).secondsOfKernel(0.5), 1 + 0.5 * 4);
}

TEST(MeshGroup, CountsRanksWithinDevices) {
  // context=2 of data=2,context=2,sequence=4: ranks 0 and 4.
  MeshGroup context{{{2, 4}}}, dataAndContext{{{2, 8}, {2, 4}}};
  EXPECT_EQ(context.ranksWithin(4), 1);
  EXPECT_EQ(context.ranksWithin(8), 2);
  EXPECT_EQ(dataAndContext.ranks(), 4);
  EXPECT_EQ(dataAndContext.ranksWithin(8), 2);
  EXPECT_EQ(dataAndContext.ranksWithin(16), 4);
  EXPECT_EQ(dataAndContext.span(), 13);
}

} // namespace
