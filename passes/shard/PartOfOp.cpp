// SPDX-License-Identifier: Apache-2.0
#include "passes/shard/PartOfOp.h"

#include "mlir/IR/BuiltinOps.h"

using namespace mlir;
using namespace mlir::rota;

SmallVector<Type>
mlir::rota::partTypes(ValueRange values,
                      ArrayRef<FactorRule::Dimensions> dimensions,
                      const FactorAxes &factors, MeshAttr mesh) {
  SmallVector<Type> types;
  for (auto [number, value] : llvm::enumerate(values)) {
    auto tensor = dyn_cast<RankedTensorType>(value.getType());
    types.push_back(
        tensor ? partType(tensor,
                          makeSharding(mesh.getContext(),
                                       composeDimensions(dimensions[number],
                                                         factors, mesh),
                                       {}, mesh),
                          mesh)
               : value.getType());
  }
  return types;
}

FailureOr<SmallVector<Value>> mlir::rota::buildPartOf(OpBuilder &builder,
                                                      Operation *op,
                                                      const FactorAxes &factors,
                                                      ArrayRef<int64_t> sizes,
                                                      ArrayRef<Type> results) {
  bool isDivided =
      llvm::any_of(factors, [](const AxisList &axes) { return !axes.empty(); });
  if (auto rewritten = dyn_cast<PartitionOpInterface>(op);
      rewritten && isDivided) {
    auto parts = rewritten.buildPart(builder, factors, sizes, results);
    if (failed(parts) || !parts->empty())
      return parts;
  }
  for (auto [result, type] : llvm::zip_equal(op->getResults(), results))
    result.setType(type);
  eraseFactors(op);
  return SmallVector<Value>();
}

namespace {
/// Remembers the ops that a builder makes.
struct Inserted : OpBuilder::Listener {
  void notifyOperationInserted(Operation *op, OpBuilder::InsertPoint) override {
    ops.push_back(op);
  }
  SmallVector<Operation *> ops;
};
} // namespace

/// Makes the part beside the op, reads its cost and erases it.
std::optional<Cost> mlir::rota::costOfPart(Operation *op,
                                           const FactorRule &rule,
                                           const FactorAxes &factors,
                                           MeshAttr mesh) {
  ScopedDiagnosticHandler silent(op->getContext(),
                                 [](Diagnostic &) { return success(); });
  Inserted inserted;
  OpBuilder builder(op);
  builder.setListener(&inserted);
  SmallVector<Value> operands;
  for (Type type : partTypes(op->getOperands(), rule.operands, factors, mesh))
    operands.push_back(UnrealizedConversionCastOp::create(builder, op->getLoc(),
                                                          type, ValueRange())
                           .getResult(0));
  Operation *copy = builder.clone(*op);
  copy->setOperands(operands);
  auto built =
      buildPartOf(builder, copy, factors, rule.sizes,
                  partTypes(op->getResults(), rule.results, factors, mesh));
  std::optional<Cost> cost;
  if (succeeded(built)) {
    cost.emplace();
    for (Operation *part : inserted.ops)
      if (auto priced = dyn_cast<CostOpInterface>(part);
          priced && (part != copy || built->empty()))
        *cost += priced.getCost();
  }
  // The copy may have got an operand that stands after it.
  for (Operation *part : inserted.ops)
    part->dropAllReferences();
  for (Operation *part : inserted.ops)
    part->erase();
  return cost;
}
