// SPDX-License-Identifier: Apache-2.0
//
// Bytes that move, and work as bytes.
#include "passes/shard/propagation/DivisionCosts.h"

#include "ir/rota/cost/Traffic.h"
#include "ir/rota/experts/CountedRows.h"
#include "ir/rota/model/Model.h"
#include "passes/shard/reshard/ReshardPlanner.h"

using namespace mlir;
using namespace mlir::rota;

DivisionCosts::DivisionCosts(func::FuncOp function, Propagation &propagation)
    : function(function), propagation(propagation), mesh(meshOf(function)),
      machine(machineOf(function)),
      resultRoles(FunctionRoles(function).results()) {}

DivisionCosts::OpDivision &DivisionCosts::divisionOf(Operation *op) {
  auto [place, isNew] = divisions.try_emplace(op);
  if (isNew)
    place->second = {divisionRule(op), propagation.factorsOf(op), std::nullopt};
  return place->second;
}

void DivisionCosts::divide(Operation *op, FactorAxes factors) {
  OpDivision &division = divisionOf(op);
  division.factors = std::move(factors);
  division.work.reset();
  for (Value value : changedBy(op)) {
    sums.erase(value);
    valueCosts.erase(value);
  }
}

/// The values whose sums or costs depend on the division of `op`: those around
/// it, and those around each op that takes a sum on which it has an influence.
const llvm::SetVector<Value> &DivisionCosts::changedBy(Operation *op) {
  auto [place, isNew] = changed.try_emplace(op);
  llvm::SetVector<Value> &values = place->second;
  if (!isNew)
    return values;
  llvm::SetVector<Operation *> reached;
  reached.insert(op);
  for (size_t next = 0; next < reached.size(); ++next) {
    Operation *own = reached[next];
    values.insert(own->operand_begin(), own->operand_end());
    values.insert(own->result_begin(), own->result_end());
    for (OpOperand &use : own->getUses())
      if (isa<FactorRuleOpInterface>(use.getOwner()) &&
          llvm::any_of(ruleOf(use.getOwner()).linear, [&](const auto &group) {
            return llvm::is_contained(group, use.getOperandNumber());
          }))
        reached.insert(use.getOwner());
  }
  return values;
}

void DivisionCosts::countSums(ArrayRef<AxisRefAttr> axes) {
  llvm::append_range(counted, axes);
  counted = normalizedSet(counted, mesh);
  sums.clear();
  valueCosts.clear();
}

ShardingAttr DivisionCosts::compose(const FactorRule::Dimensions &dimensions,
                                    const FactorAxes &factors,
                                    ArrayRef<AxisRefAttr> unreduced) {
  return makeSharding(function.getContext(),
                      composeDimensions(dimensions, factors, mesh), unreduced,
                      mesh);
}

ShardingAttr DivisionCosts::closed(ShardingAttr sharding,
                                   ArrayRef<AxisRefAttr> unreduced) {
  return makeSharding(function.getContext(), dimensionAxes(sharding, mesh),
                      unreduced, mesh);
}

/// True when the results have no more bytes than these operands: the sum of the
/// results is then not the dearer one (Sums.h).
bool DivisionCosts::makesLess(Operation *op, ArrayRef<int64_t> operands) {
  OpDivision &division = divisionOf(op);
  auto bytes = [&](Value value, const FactorRule::Dimensions &dimensions) {
    double ranks = 1;
    for (const AxisList &axes :
         composeDimensions(dimensions, division.factors, mesh))
      ranks *= double(mesh.getSize(axes));
    return double(bytesOfTensor(value)) / ranks;
  };
  double before = 0, after = 0;
  for (int64_t operand : operands)
    before += bytes(op->getOperand(operand), division.rule.operands[operand]);
  for (auto [result, dimensions] :
       llvm::zip(op->getResults(), division.rule.results))
    after += bytes(result, dimensions);
  return after <= before;
}

/// The largest sums that a group of operands in which the op is linear has.
DivisionCosts::Passed DivisionCosts::passedBy(Operation *op) {
  Passed passed;
  if (counted.empty() || !isa<FactorRuleOpInterface>(op))
    return passed;
  OpDivision &division = divisionOf(op);
  AxisList dividing;
  for (const AxisList &axes : division.factors)
    llvm::append_range(dividing, axes);
  for (const auto &group : division.rule.linear) {
    AxisList common = sumsOf(op->getOperand(group.front()));
    for (int64_t operand : ArrayRef(group).drop_front())
      common = intersection(common, sumsOf(op->getOperand(operand)), mesh);
    common = difference(common, dividing, mesh);
    if (mesh.getSize(common) > mesh.getSize(passed.axes) &&
        makesLess(op, group))
      passed = {group, common};
  }
  return passed;
}

AxisList DivisionCosts::sumsOf(Value value) {
  auto known = sums.find(value);
  if (known != sums.end())
    return known->second;
  AxisList axes;
  Operation *op = value.getDefiningOp();
  if (!op) {
    axes = normalizedSet(propagation.shardingOf(value).getUnreduced(), mesh);
  } else if (isa<FactorRuleOpInterface>(op) && !isa<ReadOp, ConstrainOp>(op)) {
    OpDivision &division = divisionOf(op);
    axes = summedAxes(division.rule, cast<OpResult>(value).getResultNumber(),
                      division.factors, mesh);
    llvm::append_range(axes, passedBy(op).axes);
  }
  return sums[value] = intersection(normalizedSet(axes, mesh), counted, mesh);
}

ShardingAttr DivisionCosts::madeAs(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op || !isa<FactorRuleOpInterface>(op) || isa<ReadOp, ConstrainOp>(op))
    return closed(propagation.shardingOf(value), sumsOf(value));
  OpDivision &division = divisionOf(op);
  unsigned number = cast<OpResult>(value).getResultNumber();
  return compose(division.rule.results[number], division.factors,
                 sumsOf(value));
}

ShardingAttr DivisionCosts::savedAs(Value value) {
  ShardingAttr sharding = propagation.shardingOf(value);
  AxisList axes = difference(sumsOf(value), dividingAxes(sharding), mesh);
  return ShardingAttr::get(function.getContext(), sharding.getDimensions(),
                           axes, sharding.getReplicated());
}

/// Residuals leave as sums, gradients and other results summed up.
ShardingAttr DivisionCosts::neededBy(OpOperand &use) {
  Operation *op = use.getOwner();
  if (auto accumulate = dyn_cast<AccumulateOp>(op)) {
    ParamOp param = lookupParam(op, accumulate.getParamAttr().getAttr());
    if (param.getPlacement())
      return closed(param.getPlacement()->getCompute(), {});
  }
  if (auto constrain = dyn_cast<ConstrainOp>(op))
    return closed(propagation.shardingOf(constrain.getResult()), {});
  if (isa<func::ReturnOp>(op)) {
    unsigned number = use.getOperandNumber();
    auto given = function.getResultAttrOfType<ShardingAttr>(
        number, RotaDialect::ShardingAttrHelper::getNameStr());
    if (given)
      return closed(given, {});
    if (!isResidual(resultRoles[number]))
      return closed(propagation.shardingOf(use.get()), {});
    ShardingAttr saved = savedAs(use.get());
    return closed(saved, saved.getUnreduced());
  }
  OpDivision &division = divisionOf(op);
  unsigned number = use.getOperandNumber();
  Passed passed = passedBy(op);
  bool takesSums = llvm::is_contained(passed.operands, number);
  return compose(division.rule.operands[number], division.factors,
                 takesSums ? passed.axes : AxisList());
}

double DivisionCosts::costOf(Value value) {
  auto known = valueCosts.find(value);
  if (known != valueCosts.end())
    return known->second;
  return valueCosts[value] = movedFrom(value);
}

/// What moving the value to its uses costs.
double DivisionCosts::movedFrom(Value value) {
  // Conditions are not sent.
  if (!isa<RankedTensorType>(value.getType()) ||
      getElementTypeOrSelf(value).isInteger(1))
    return 0;
  ShardingAttr from = madeAs(value);
  llvm::MapVector<ShardingAttr, SmallVector<OpOperand *>> uses;
  for (OpOperand &use : value.getUses())
    uses[neededBy(use)].push_back(&use);
  double cost = 0;
  for (auto &[to, readers] : uses) {
    if (to == from)
      continue;
    std::optional<CountedRows> rows = countedRows(value, readers);
    cost += costOf(value.getType(), from, to,
                   rows ? std::optional(rows->fill) : std::nullopt);
  }
  return cost;
}

double DivisionCosts::costOf(Type type, ShardingAttr from, ShardingAttr to,
                             std::optional<double> fill) {
  Attribute key =
      fill ? FloatAttr::get(Float64Type::get(function.getContext()), *fill)
           : Attribute();
  auto [place, isNew] = costs.try_emplace({type, from, to, key});
  if (isNew)
    place->second =
        planReshard(cast<RankedTensorType>(type), from, to, mesh, fill)
            .weightOn(machine, mesh);
  return place->second;
}

double DivisionCosts::workOf(Operation *op, const FactorAxes &factors) const {
  return bytesOfWork(op, partFlops(op, factors, mesh));
}

llvm::SetVector<Value> DivisionCosts::valuesAround(ArrayRef<Operation *> ops) {
  llvm::SetVector<Value> values;
  for (Operation *op : ops) {
    values.insert(op->operand_begin(), op->operand_end());
    values.insert(op->result_begin(), op->result_end());
  }
  return values;
}

double DivisionCosts::costOf(ArrayRef<Operation *> ops,
                             ArrayRef<Value> values) {
  double cost = 0;
  for (Operation *op : ops) {
    OpDivision &division = divisionOf(op);
    if (!division.work)
      division.work = workOf(op, division.factors);
    cost += *division.work;
  }
  for (Value value : values)
    cost += costOf(value);
  return cost;
}

double DivisionCosts::costIf(
    ArrayRef<std::pair<Operation *, const FactorAxes *>> changes,
    ArrayRef<Operation *> ops, ArrayRef<Value> values) {
  SmallVector<std::tuple<Operation *, FactorAxes, std::optional<double>>, 2>
      before;
  SmallVector<std::pair<Value, AxisList>> sumsBefore;
  SmallVector<std::pair<Value, double>> costsBefore;
  for (auto [op, factors] : changes) {
    OpDivision &division = divisionOf(op);
    before.push_back({op, division.factors, division.work});
    for (Value value : changedBy(op)) {
      if (auto known = sums.find(value); known != sums.end())
        sumsBefore.push_back({value, known->second});
      if (auto known = valueCosts.find(value); known != valueCosts.end())
        costsBefore.push_back({value, known->second});
    }
    divide(op, *factors);
  }
  double cost = costOf(ops, values);
  for (auto &[op, previous, work] : before) {
    divide(op, previous);
    divisionOf(op).work = work;
  }
  for (auto &[value, axes] : sumsBefore)
    sums[value] = axes;
  for (auto [value, known] : costsBefore)
    valueCosts[value] = known;
  return cost;
}
