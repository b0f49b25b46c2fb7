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

/// Arguments: counts, groups.
void emitGroups(RowBuilder &k, const GroupShape &shape, Value sequence) {
  Type i32 = k.ops().getI32Type();
  Memory counts = k.offset(k.argument(0, i32), k.mul(sequence, shape.experts));
  GroupTable groups(shape, k.argument(1, i32).base);
  k.each(shape.experts, [&](Value expert) {
    GroupRows rows = rowsOfExpert(k, shape, counts, expert);
    k.storeIndex(rows.first, groups.firsts(k, sequence), expert);
    k.storeIndex(rows.end, groups.ends(k, sequence), expert);
    // The last expert of a block says for how many rows there is no room.
    Value block = k.div(expert, shape.expertsOfBlock());
    Value next = k.mul(k.add(block, 1), shape.expertsOfBlock());
    k.when(k.isEqual(k.add(expert, 1), next), [&] {
      Value needed = k.sub(rows.whole, k.mul(block, shape.rowsOfBlock()));
      k.storeIndex(k.select(k.isLess(rows.end, rows.whole), needed, k.i64(0)),
                   groups.overfull(k, sequence), block);
    });
  });
}

/// A plan whose first call adds up the counts, operand `counts`, in temporary
/// 0.
FailureOr<KernelPlan> planGroups(Operation *op, const GroupShape &shape,
                                 unsigned counts, KernelLibrary &library) {
  FailureOr<std::string> symbol = emitRowCode(
      library, op->getLoc(), "groups_of_rows", shape.key(), 2,
      {shape.batch, shape.experts, 32},
      [&](RowBuilder &k, Value sequence) { emitGroups(k, shape, sequence); });
  if (failed(symbol))
    return failure();
  KernelPlan plan;
  plan.temporaries = {shape.batch * GroupTable::stride(shape) * 4};
  plan.calls = {{*symbol,
                 shape.batch,
                 1,
                 {{Kind::Operand, counts}, {Kind::Temporary, 0}}}};
  return plan;
}

/// A plan that also adds up the tiles of experts, in temporary 1.
FailureOr<KernelPlan> planTiles(mlir::rota::GroupedProductOp op,
                                const GroupedProduct &product,
                                KernelLibrary &library) {
  const GroupShape &shape = product.shape;
  KernelCall call{"", 1, 1, {{Kind::Temporary, 0}, {Kind::Temporary, 1}}};
  for (int note = 0; note < kNoteArguments; ++note)
    call.arguments.push_back({Kind::Scalar, 0}); // the device gives them
  bool hasOffset = bool(op.getOffset());
  if (hasOffset)
    call.arguments.push_back({Kind::Operand, 3});
  FailureOr<KernelPlan> plan = planGroups(op, shape, 2, library);
  FailureOr<std::string> symbol = emitGpuKernel(
      library, op->getLoc(), "tiles_of_experts",
      shape.key() + " of " + std::to_string(product.tile()) +
          (hasOffset ? " from an offset" : ""),
      call.arguments.size(), /*blocks=*/1, GroupedCode::kThreads,
      [&](GpuBuilder &k) { emitTilesOfExperts(k, product, hasOffset); });
  if (failed(plan) || failed(symbol))
    return failure();
  LaunchShape launch = library.getLaunchShape(*symbol);
  launch.noteAt = kNoteAt;
  library.setLaunchShape(*symbol, launch);
  call.symbol = *symbol;
  plan->temporaries.push_back(ExpertTiles::count(shape) * 4);
  plan->calls.push_back(std::move(call));
  return plan;
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
  FailureOr<std::string> symbol = emitGpuKernel(
      library, op->getLoc(), "grouped_product", product.key(), 5,
      product.expertTiles() * product.columnTiles(), GroupedCode::kThreads,
      [&](GpuBuilder &k) { GroupedCode(k, product).emitProduct(); });
  return addProduct(planTiles(op, product, library), symbol,
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
  FailureOr<std::string> symbol = emitGpuKernel(
      library, op->getLoc(), "grouped_product_grad", product.key(), 4,
      shape.experts * product.matrixTiles() * product.columnTiles(),
      GroupedCode::kThreads,
      [&](GpuBuilder &k) { GroupedCode(k, product).emitGradient(); });
  return addProduct(planGroups(op, shape, 2, library), symbol,
                    shape.experts * shape.width);
}

void addGpuGroupedProductEmitters(KernelEmitters &emitters) {
  emitters.add<planGroupedProduct>();
  emitters.add<planGroupedProductGrad>();
}

} // namespace rota::lowering
