// SPDX-License-Identifier: Apache-2.0
//
// Products of rows that lie in groups, and their derivative in the matrices.
// Counts are data: a first kernel adds them up, and each of a fixed number of
// blocks of threads finds the tile of an expert's rows that it has, or has a
// fixed tile of a matrix. Sums go over the inner dimension, or over sequences
// and rows, by ascending numbers, so that no bit of a row depends on other
// rows.
#include "ir/rota/experts/Experts.h"
#include "ir/rota/model/Model.h"
#include "ir/rota/model/Update.h"
#include "lowering/gpu/experts/GpuGroupedCode.h"

using namespace mlir;

namespace rota::lowering {
namespace {

using Kind = KernelArgument::Kind;

/// The type of a result, or of what it is added to.
Type storedType(Value result, bool accumulate) {
  if (accumulate)
    for (Operation *user : result.getUsers())
      if (auto add = dyn_cast<mlir::rota::AccumulateOp>(user))
        return mlir::rota::gradientType(
            mlir::rota::lookupParam(add, add.getParamAttr().getAttr()));
  return getElementTypeOrSelf(result);
}

/// The kernel of a product, for chips with instructions of warpgroups, too.
FailureOr<std::string> emitGrouped(KernelLibrary &library, Location loc,
                                   StringRef prefix,
                                   const GroupedProduct &product,
                                   int64_t blocks,
                                   void (GroupedCode::*emit)()) {
  auto codeBy = [&](MatrixUnit unit) {
    return [&product, emit, unit](GpuBuilder &k) {
      (GroupedCode(k, product, unit).*emit)();
    };
  };
  auto byWarps = codeBy(MatrixUnit::Warp),
       byGroups = codeBy(MatrixUnit::Warpgroup);
  llvm::function_ref<void(GpuBuilder &)> grouped;
  if (product.takesMatrices())
    grouped = byGroups;
  constexpr unsigned arguments = 5;
  return emitGpuKernel(library, loc, prefix, product.key(), arguments, blocks,
                       GroupedCode::kThreads, byWarps, grouped);
}

/// Adds the call that computes result 0 from all temporaries and operands 0 and
/// 1.
FailureOr<KernelPlan> addProduct(FailureOr<KernelPlan> plan,
                                 FailureOr<std::string> symbol, int64_t rows) {
  if (failed(plan) || failed(symbol))
    return failure();
  KernelCall call{*symbol, rows, 1, {}};
  for (unsigned i = 0; i < plan->temporaries.size(); ++i)
    call.arguments.push_back({Kind::Temporary, i});
  for (unsigned operand : {0, 1})
    call.arguments.push_back({Kind::Operand, operand});
  call.arguments.push_back({Kind::Result, 0});
  plan->calls.push_back(std::move(call));
  return plan;
}

} // namespace

static FailureOr<KernelPlan> planGroupedProduct(mlir::rota::GroupedProductOp op,
                                                ArrayRef<bool> accumulated,
                                                KernelLibrary &library) {
  GroupShape shape(op.getRows(), op.getCounts(), op.getBlocks());
  GroupedProduct product{
      shape, op.getResult().getType().getDimSize(2), op.getTransposed(),
      storedType(op.getResult(), accumulated[0]), accumulated[0]};
  FailureOr<std::string> symbol = emitGrouped(
      library, op->getLoc(), "grouped_product", product,
      product.expertTiles() * product.columnTiles(), &GroupedCode::emitProduct);
  TableForm form{product.tileRows(), /*notes=*/true, bool(op.getOffset())};
  return addProduct(planExpertTables(op, shape, form, library), symbol,
                    shape.batch * shape.rows);
}

static FailureOr<KernelPlan>
planGroupedProductGrad(mlir::rota::GroupedProductGradOp op,
                       ArrayRef<bool> accumulated, KernelLibrary &library) {
  GroupShape shape(op.getLhs(), op.getCounts(), op.getBlocks());
  GroupedProduct product{shape, op.getResult().getType().getDimSize(2),
                         /*transposed=*/false,
                         storedType(op.getResult(), accumulated[0]),
                         accumulated[0]};
  FailureOr<std::string> symbol =
      emitGrouped(library, op->getLoc(), "grouped_product_grad", product,
                  shape.experts * product.matrixTiles() * product.columnTiles(),
                  &GroupedCode::emitGradient);
  return addProduct(planExpertTables(op, shape, {product.tileRows()}, library),
                    symbol, shape.experts * shape.width);
}

void addGpuGroupedProductEmitters(KernelEmitters &emitters) {
  emitters.add<planGroupedProduct>();
  emitters.add<planGroupedProductGrad>();
}

} // namespace rota::lowering
