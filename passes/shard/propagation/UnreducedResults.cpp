// SPDX-License-Identifier: Apache-2.0
//
// A fixpoint over the functions of a module.
#include "passes/shard/propagation/UnreducedResults.h"

#include "ir/rota/model/Model.h"

using namespace mlir;
using namespace mlir::rota;

static constexpr StringLiteral kSharding =
    RotaDialect::ShardingAttrHelper::getNameStr();

bool UnreducedResults::isLoss(func::FuncOp function, unsigned result) {
  Role role = FunctionRoles(function).results()[result];
  return role == Role::LossSum || role == Role::LossWeight ||
         role == Role::LossTerm;
}

bool UnreducedResults::isSplat(Value value) {
  auto constant = value.getDefiningOp<arith::ConstantOp>();
  return constant && isa<SplatElementsAttr>(constant.getValue()) &&
         isa<FloatType>(getElementTypeOrSelf(value));
}

bool UnreducedResults::isFreeScalar(OpOperand &use) {
  auto function = cast<func::FuncOp>(use.getOwner()->getParentOp());
  auto tensor = dyn_cast<RankedTensorType>(use.get().getType());
  return tensor && tensor.getRank() == 0 &&
         isa<FloatType>(tensor.getElementType()) &&
         !function.getResultAttr(use.getOperandNumber(), kSharding);
}

bool UnreducedResults::isResidual(func::FuncOp function,
                                  unsigned result) const {
  return llvm::any_of(edges, [&](const RoleEdge &edge) {
    return edge.source.function == function && edge.source.index == result;
  });
}

UnreducedResults::UnreducedResults(ModuleOp module)
    : mesh(meshOf(module)), edges(residualEdgesIn(module)) {
  module.walk([&](LayerOp layer) {
    llvm::append_range(edges, residualEdgesIn(layer));
  });
  SmallVector<func::FuncOp> functions;
  module.walk([&](func::FuncOp function) {
    if (!function.isExternal())
      functions.push_back(function);
  });
  // The agreed sets only shrink.
  bool changed = true;
  while (changed) {
    changed = false;
    for (func::FuncOp function : functions)
      changed |= agree(function);
  }
}

Sums UnreducedResults::sumsOf(func::FuncOp function) const {
  return Sums(function, [&](OpOperand &use) { return allowed(use); });
}

/// The axes that do not divide a tensor.
static AxisList freeAxes(MLIRContext *context, ArrayRef<AxisRefAttr> dividing,
                         MeshAttr mesh) {
  AxisList all;
  for (uint32_t axis = 0; axis <= getMaxEnumValForMeshAxis(); ++axis)
    all.push_back(AxisRefAttr::get(context, static_cast<MeshAxis>(axis)));
  return difference(normalizedSet(all, mesh), dividing, mesh);
}

/// The axes over which the operand of `use` may be a sum, as agreed so far.
AxisList UnreducedResults::allowed(OpOperand &use) const {
  auto known = [&](const auto &map, auto key, ShardingAttr sharding) {
    auto place = map.find(key);
    if (place != map.end())
      return place->second;
    // An axis that divides a value cannot also be summed over.
    return freeAxes(
        mesh.getContext(),
        sharding ? dividingAxes(sharding) : SmallVector<AxisRefAttr>(), mesh);
  };
  if (auto accumulate = dyn_cast<AccumulateOp>(use.getOwner())) {
    ParamOp param =
        lookupParam(accumulate, accumulate.getParamAttr().getAttr());
    // Without a placement nothing records the axes to sum over.
    if (!param.getPlacement())
      return {};
    return known(agreed, param.getOperation(),
                 param.getPlacement()->getCompute());
  }
  if (isa<AuxiliaryLossOp>(use.getOwner()))
    return known(agreed, static_cast<Operation *>(nullptr), {});
  auto function = cast<func::FuncOp>(use.getOwner()->getParentOp());
  unsigned number = use.getOperandNumber();
  auto sharding = function.getResultAttrOfType<ShardingAttr>(number, kSharding);
  if (isResidual(function, number))
    return known(residuals, std::pair(function.getOperation(), number),
                 sharding);
  if (sharding)
    return normalizedSet(sharding.getUnreduced(), mesh);
  if (!isFreeScalar(use))
    return {};
  if (isLoss(function, number))
    return known(agreed, static_cast<Operation *>(nullptr), {});
  return freeAxes(mesh.getContext(), {}, mesh);
}

/// Reduces the agreed axes to those that this function supports. True when that
/// changed anything.
bool UnreducedResults::agree(func::FuncOp function) {
  Sums sums = sumsOf(function);
  bool changed = agreeOnResiduals(function, sums);
  auto lower = [&](Operation *destination, const AxisList &axes) {
    auto [place, isNew] = agreed.try_emplace(destination, axes);
    AxisList common = intersection(place->second, axes, mesh);
    changed |= isNew || common != place->second;
    place->second = common;
  };
  Block &body = function.getBody().front();
  for (auto accumulate : body.getOps<AccumulateOp>())
    lower(lookupParam(accumulate, accumulate.getParamAttr().getAttr()),
          sums.takenAs(accumulate.getValueMutable()));
  for (auto loss : body.getOps<AuxiliaryLossOp>())
    lower(nullptr, sums.takenAs(loss.getSumMutable()));
  for (OpOperand &operand : body.getTerminator()->getOpOperands())
    if (isLoss(function, operand.getOperandNumber()) && isFreeScalar(operand) &&
        !isSplat(operand.get()))
      lower(nullptr, sums.takenAs(operand));
  return changed;
}

static std::pair<Operation *, unsigned> keyOf(const FunctionPort &result) {
  return {func::FuncOp(result.function).getOperation(), result.index};
}

/// Reduces the agreed axes of residuals that this function makes or takes to
/// those that it supports. True when that changed anything.
bool UnreducedResults::agreeOnResiduals(func::FuncOp function,
                                        const Sums &sums) {
  bool changed = false;
  Operation *terminator = function.getBody().front().getTerminator();
  for (const RoleEdge &edge : edges) {
    auto key = keyOf(edge.source);
    AxisList axes;
    if (edge.source.function == function) {
      axes = sums.takenAs(terminator->getOpOperand(edge.source.index));
    } else if (edge.user.function == function && residuals.contains(key)) {
      axes = sums.takenByAll(function.getArgument(edge.user.index));
    } else {
      continue;
    }
    auto [place, isNew] = residuals.try_emplace(key, axes);
    AxisList common = intersection(place->second, axes, mesh);
    changed |= isNew || common != place->second;
    place->second = common;
  }
  tellResiduals();
  return changed;
}

/// Writes the agreed axes of residuals on both ends of each edge.
void UnreducedResults::tellResiduals() {
  for (const RoleEdge &edge : edges) {
    AxisList axes = residuals.lookup(keyOf(edge.source));
    for (const FunctionPort &port : {edge.source, edge.user})
      if (ShardingAttr sharding = port.sharding())
        port.setSharding(ShardingAttr::get(sharding.getContext(),
                                           sharding.getDimensions(), axes,
                                           sharding.getReplicated()));
  }
}
