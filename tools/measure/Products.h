// SPDX-License-Identifier: Apache-2.0
//
// The matrix products that are measured, and constants of the planner's model
// of them that fit measured times.
#ifndef ROTA_TOOLS_MEASURE_PRODUCTS_H
#define ROTA_TOOLS_MEASURE_PRODUCTS_H

#include "ir/rota/cost/Machine.h"
#include "runtime/Abi.h"

namespace rota {

/// The products of a layer: y = x w^T, dx = dy w, dw += dy^T x.
enum class ProductForm { Forward, InputGradient, WeightGradient };
inline constexpr ProductForm kProductForms[] = {ProductForm::Forward,
                                                ProductForm::InputGradient,
                                                ProductForm::WeightGradient};

/// The form that products of this size most often have in a layer: tokens are
/// the most, and they are the rows of the first two forms and the depth of
/// weight gradients.
ProductForm usualFormOf(const mlir::rota::ProductSize &size);

/// A product of elements of `type` (ROTA_F32, ROTA_BF16), which weight
/// gradients add to f32.
RotaGemm describe(const mlir::rota::ProductSize &size, ProductForm form,
                  int32_t type);

/// Sizes of the products of `type` ("bf16", "f32") that are measured on GPUs:
/// of few and of many tiles, with and without a last wave that is full.
std::vector<mlir::rota::ProductSize> gpuProductSizes(llvm::StringRef type);

/// A measured product.
struct TimedProduct {
  mlir::rota::ProductSize size;
  double bytes = 0; // of its matrices
  double seconds = 0;
};

/// Sets the tiles, the efficiencies and the depth of products of `machine` so
/// that it says the measured times, with its units, its peak for that type, its
/// memory and its launch, and returns the mean error as a share: the sum of the
/// squares of the errors' logarithms is the least that changes of one number
/// after the other reach. A tile that is best for none of the products keeps
/// its usual efficiency.
double fitProducts(mlir::rota::Machine &machine,
                   llvm::ArrayRef<TimedProduct> products,
                   mlir::Type elementType);

} // namespace rota

#endif // ROTA_TOOLS_MEASURE_PRODUCTS_H
