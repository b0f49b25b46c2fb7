// SPDX-License-Identifier: Apache-2.0
#include "tools/measure/Products.h"

#include <algorithm>
#include <cmath>

using mlir::rota::Machine;
using mlir::rota::ProductSize;

namespace rota {

ProductForm usualFormOf(const ProductSize &size) {
  return size.k > size.m ? ProductForm::WeightGradient : ProductForm::Forward;
}

RotaGemm describe(const ProductSize &size, ProductForm form, int32_t type) {
  RotaGemm gemm = {};
  gemm.batch = 1;
  gemm.m = int64_t(size.m), gemm.n = int64_t(size.n), gemm.k = int64_t(size.k);
  gemm.transposeA = form == ProductForm::WeightGradient;
  gemm.transposeB = form == ProductForm::Forward;
  gemm.lda = gemm.transposeA ? gemm.m : gemm.k;
  gemm.ldb = gemm.transposeB ? gemm.k : gemm.n;
  gemm.ldc = gemm.n;
  gemm.accumulate = form == ProductForm::WeightGradient;
  gemm.typeA = gemm.typeB = type;
  gemm.typeC = form == ProductForm::WeightGradient ? ROTA_F32 : type;
  return gemm;
}

std::vector<ProductSize> gpuProductSizes(llvm::StringRef type) {
  if (type == "f32")
    return {{1, 512, 1024, 1024},  {1, 2048, 1024, 1024},
            {1, 8192, 1024, 1024}, {1, 1024, 1024, 8192},
            {1, 2048, 4096, 4096}, {1, 8192, 4096, 4096}};
  return {{1, 512, 512, 1024},    {1, 512, 1024, 1024},  {1, 1024, 1024, 1024},
          {1, 512, 512, 8192},    {1, 1024, 1024, 8192}, {1, 512, 4096, 4096},
          {1, 2048, 1024, 1024},  {1, 2048, 4096, 4096}, {1, 8192, 1024, 1024},
          {1, 8192, 1024, 4096},  {1, 8192, 4096, 1024}, {1, 1024, 4096, 8192},
          {1, 4096, 4096, 256},   {1, 4096, 4096, 4096}, {1, 8192, 8192, 512},
          {1, 4096, 4096, 16384}, {1, 8192, 4096, 4096}, {1, 8192, 8192, 8192},
          {1, 8192, 32768, 4096}};
}

namespace {

/// A number that is fitted, and its range.
struct FittedNumber {
  double *value;
  double least, most;
};

/// The measured time by that of the machine, as a logarithm.
double errorOf(const Machine &machine, const TimedProduct &product,
               mlir::Type elementType) {
  double work = machine.secondsOfProduct(product.size, elementType);
  double memory = product.bytes / machine.reachedMemory(product.bytes);
  return std::log((machine.launch + std::max(work, memory)) / product.seconds);
}

double squaresOf(const Machine &machine, llvm::ArrayRef<TimedProduct> products,
                 mlir::Type elementType) {
  double sum = 0;
  for (const TimedProduct &product : products) {
    double error = errorOf(machine, product, elementType);
    sum += error * error;
  }
  return sum;
}

} // namespace

double fitProducts(Machine &machine, llvm::ArrayRef<TimedProduct> products,
                   mlir::Type elementType) {
  // The efficiency of the first is 1, since another one multiplies those of
  // all. Either side of a tile may be the rows.
  machine.tiles = {{128, 256, 1},
                   {128, 128, 0.9},
                   {64, 256, 0.85},
                   {64, 128, 0.7},
                   {64, 64, 0.5}};
  machine.productEfficiency = 0.8;
  machine.depth = 256;
  std::vector<FittedNumber> numbers = {{&machine.productEfficiency, 0.01, 1},
                                       {&machine.depth, 1, 4096}};
  for (mlir::rota::ProductTile &tile : llvm::drop_begin(machine.tiles))
    numbers.push_back({&tile.efficiency, 0.05, 1});
  double least = squaresOf(machine, products, elementType);
  auto tryFactor = [&](FittedNumber number, double factor) {
    double before = *number.value;
    *number.value = std::clamp(before * factor, number.least, number.most);
    double squares = squaresOf(machine, products, elementType);
    if (squares < least * (1 - 1e-6)) {
      least = squares;
      return true;
    }
    *number.value = before;
    return false;
  };
  for (double step = 0.3; step > 0.002; step /= 2)
    for (bool isBetter = true; isBetter;) {
      isBetter = false;
      for (FittedNumber number : numbers)
        isBetter |=
            tryFactor(number, 1 + step) || tryFactor(number, 1 / (1 + step));
    }
  double sum = 0;
  for (const TimedProduct &product : products)
    sum += std::abs(std::exp(errorOf(machine, product, elementType)) - 1);
  return products.empty() ? 0 : sum / double(products.size());
}

} // namespace rota
