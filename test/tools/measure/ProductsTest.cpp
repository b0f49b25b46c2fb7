// SPDX-License-Identifier: Apache-2.0
//
// The fit of the planner's model of products, on made-up times.
#include "tools/measure/Products.h"

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/MLIRContext.h"

#include <cmath>
#include <gtest/gtest.h>

using namespace rota;
using mlir::rota::Machine;
using mlir::rota::ProductSize;

namespace {

class FitProducts : public testing::Test {
protected:
  /// A GPU without constants of products.
  static Machine makeGpu() {
    Machine machine;
    machine.units = 132;
    machine.types["bf16"].flopsPerSecond = 1e15;
    machine.memoryBytesPerSecond = 3e12;
    machine.launch = 2e-6;
    return machine;
  }

  double secondsOn(const Machine &machine, const ProductSize &size) {
    double bytes = bytesOf(size);
    return machine.launch + std::max(machine.secondsOfProduct(size, bf16),
                                     bytes / machine.reachedMemory(bytes));
  }
  static double bytesOf(const ProductSize &size) {
    return 2 * (size.m * size.k + size.k * size.n + size.m * size.n);
  }
  /// Times of the measured sizes, longer or shorter by turns by a share.
  std::vector<TimedProduct> timesOn(const Machine &machine, double noise) {
    std::vector<TimedProduct> products;
    for (const ProductSize &size : gpuProductSizes("bf16")) {
      noise = -noise;
      products.push_back(
          {size, bytesOf(size), secondsOn(machine, size) * (1 + noise)});
    }
    return products;
  }

  mlir::MLIRContext context;
  mlir::Type bf16 = mlir::BFloat16Type::get(&context);
};

TEST_F(FitProducts, FindsTheConstantsOfTimes) {
  struct Constants {
    double efficiency, depth, tiles[4];
  };
  for (const Constants &constants :
       {Constants{0.75, 300, {0.95, 0.9, 0.75, 0.6}},
        Constants{0.6, 60, {1, 0.8, 0.6, 0.3}}}) {
    Machine truth = makeGpu();
    truth.productEfficiency = constants.efficiency;
    truth.depth = constants.depth;
    truth.tiles = {{128, 256, 1},
                   {128, 128, constants.tiles[0]},
                   {64, 256, constants.tiles[1]},
                   {64, 128, constants.tiles[2]},
                   {64, 64, constants.tiles[3]}};
    Machine fitted = makeGpu();
    double error = fitProducts(fitted, timesOn(truth, 0.02), bf16);
    EXPECT_LT(error, 0.04);
    EXPECT_NEAR(fitted.productEfficiency, constants.efficiency, 0.03);
    // Sizes that were not measured.
    for (const ProductSize &size :
         {ProductSize{1, 16384, 5120, 5120}, ProductSize{1, 4096, 14336, 4096},
          ProductSize{1, 768, 3072, 768}, ProductSize{1, 2048, 2048, 2048}})
      EXPECT_NEAR(secondsOn(fitted, size) / secondsOn(truth, size), 1, 0.08)
          << size.m << " x " << size.n << " x " << size.k;
  }
}

TEST_F(FitProducts, StaysInTheRangesOfAFile) {
  // Products that are slower and faster than any machine's.
  for (double seconds : {1e3, 1e-12}) {
    std::vector<TimedProduct> products = timesOn(makeGpu(), 0);
    for (TimedProduct &product : products)
      product.seconds = seconds;
    Machine fitted = makeGpu();
    fitProducts(fitted, products, bf16);
    for (double share :
         {fitted.productEfficiency, fitted.tiles.back().efficiency}) {
      EXPECT_GE(share, 0.01);
      EXPECT_LE(share, 1);
    }
    EXPECT_GE(fitted.depth, 1);
    EXPECT_LE(fitted.depth, 4096);
  }
}

} // namespace
