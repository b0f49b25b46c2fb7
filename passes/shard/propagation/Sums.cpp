// SPDX-License-Identifier: Apache-2.0
//
// Sums over ranks: from the ops that make them to the uses that need them
// summed up.
#include "passes/shard/propagation/Sums.h"

#include "ir/rota/experts/CountedRows.h"

using namespace mlir;
using namespace mlir::rota;

Sums::Sums(func::FuncOp function, Leave leave) : mesh(meshOf(function)) {
  // Every round lowers at least one cap.
  while (settle(function, leave)) {
  }
}

AxisList Sums::takenAs(OpOperand &use) const { return taken.lookup(&use); }

AxisList Sums::takenByAll(Value value) const {
  AxisList common = available(value);
  for (OpOperand &use : value.getUses())
    common = intersection(common, takenAs(use), mesh);
  return common;
}

/// The axes that this use adds to the sum: takenAs without axes that are only
/// passed on. Where an op adds nothing to the sum and makes it no smaller,
/// summing up its operand costs the same, and other uses of the operand share
/// the result.
AxisList Sums::keptBy(OpOperand &use) const {
  AxisList axes = takenAs(use);
  Operation *op = use.getOwner();
  if (axes.empty() || op->getNumResults() != 1 || !handsOn(use))
    return axes;
  Value result = op->getResult(0);
  axes = intersection(axes, available(result), mesh);
  for (OpOperand &next : result.getUses())
    axes = intersection(axes, keptBy(next), mesh);
  return axes;
}

AxisList Sums::available(Value value) const {
  auto cap = caps.find(value);
  AxisList axes = made.lookup(value);
  return cap == caps.end() ? axes : intersection(axes, cap->second, mesh);
}

/// Elements of one rank's part, in bytes.
static double partBytes(Value value, const FactorRule::Dimensions &dimensions,
                        const FactorAxes &factors, MeshAttr mesh) {
  auto tensor = cast<RankedTensorType>(value.getType());
  double ranks = 1;
  for (ArrayRef<int64_t> dimension : dimensions)
    for (int64_t factor : dimension)
      ranks *= mesh.getSize(factors[factor]);
  return tensor.getNumElements() / ranks * tensor.getElementTypeBitWidth() / 8;
}

/// True when summing the results later moves no more bytes than summing the
/// operands now: the results are not larger, they are summed over parts of the
/// same axes anyway, or they go to `rota.accumulate`, whose sums cost nothing
/// more. A result that nothing uses counts as one that is used, since it is
/// where backward is not split: both have the same bits.
bool Sums::pays(Operation *op, ArrayRef<int64_t> group,
                ArrayRef<AxisRefAttr> axes, ArrayRef<AxisRefAttr> own) {
  auto isAccumulate = [](Operation *user) { return isa<AccumulateOp>(user); };
  auto isAccumulated = [&](Value result) {
    return !result.use_empty() && llvm::all_of(result.getUsers(), isAccumulate);
  };
  if (llvm::all_of(op->getResults(), isAccumulated))
    return true;
  auto sharesAxis = [&](AxisRefAttr ref) {
    return llvm::any_of(own, [&](AxisRefAttr other) {
      return other.getAxis() == ref.getAxis();
    });
  };
  if (llvm::all_of(axes, sharesAxis))
    return true;
  FactorRule rule = divisionRule(op);
  FactorAxes factors = factorsOf(op, rule);
  double before = 0, after = 0;
  for (int64_t operand : group)
    before += partBytes(op->getOperand(operand), rule.operands[operand],
                        factors, mesh);
  for (auto [result, dimensions] : llvm::zip(op->getResults(), rule.results))
    after += partBytes(result, dimensions, factors, mesh);
  return after <= before;
}

/// True when `use`'s op makes a sum of this operand alone, of as many bytes.
bool Sums::handsOn(OpOperand &use) const {
  Operation *op = use.getOwner();
  if (!isa<FactorRuleOpInterface>(op))
    return false;
  FactorRule rule = divisionRule(op);
  FactorAxes factors = factorsOf(op, rule);
  auto isTaken = [&](OpOperand &other) { return !takenAs(other).empty(); };
  return llvm::count_if(op->getOpOperands(), isTaken) == 1 &&
         summedAxes(rule, 0, factors, mesh).empty() &&
         partBytes(op->getResult(0), rule.results.front(), factors, mesh) ==
             partBytes(use.get(), rule.operands[use.getOperandNumber()],
                       factors, mesh);
}

FactorAxes Sums::factorsOf(Operation *op, const FactorRule &rule) const {
  auto place = together.find(op);
  return place == together.end() ? readFactors(op, rule) : place->second;
}

bool Sums::takesShare(OpOperand &use) {
  auto biased = dyn_cast<GroupedBiasOp>(use.getOwner());
  return biased && &use == &biased.getBiasMutable();
}

/// The axes over which all operands of the group are sums.
AxisList Sums::common(Operation *op, ArrayRef<int64_t> group) const {
  AxisList axes = available(op->getOperand(group.front()));
  for (int64_t operand : group.drop_front())
    if (!takesShare(op->getOpOperand(operand)))
      axes = intersection(axes, available(op->getOperand(operand)), mesh);
  return axes;
}

/// True when all operands have the factor.
static bool haveFactor(const FactorRule &rule, int64_t factor) {
  return llvm::all_of(rule.operands, [&](const auto &tensor) {
    return llvm::any_of(tensor, [&](ArrayRef<int64_t> dimension) {
      return llvm::is_contained(dimension, factor);
    });
  });
}

/// Takes axes over which all operands are sums away from the factors of an op
/// that is linear in all of them. A factor that the op adds, such as that of a
/// broadcast, keeps its axes: the sum of what it repeats is smaller.
void Sums::keepTogether(Operation *op, const FactorRule &rule) {
  together.erase(op);
  for (const auto &group : rule.linear) {
    if (group.size() != op->getNumOperands())
      continue;
    AxisList sums = common(op, group);
    FactorAxes factors = readFactors(op, rule);
    bool changed = false;
    for (auto [factor, axes] : llvm::enumerate(factors)) {
      if (!haveFactor(rule, factor))
        continue;
      auto isSum = [&](AxisRefAttr ref) {
        return overlapsAny(ref, sums, mesh);
      };
      AxisRefAttr *first = llvm::find_if(axes, isSum);
      changed |= first != axes.end();
      axes.erase(first, axes.end());
    }
    if (!changed)
      continue;
    dropStrided(rule, factors, mesh);
    together[op] = factors;
    return;
  }
}

/// True when all uses, through views, are `rota.accumulate`.
static bool isAccumulated(Value value) {
  return llvm::all_of(value.getUsers(), [](Operation *user) {
    return isa<AccumulateOp>(user) ||
           (isa<ViewOpInterface>(user) && isAccumulated(user->getResult(0)));
  });
}

void Sums::visit(Operation *op) {
  if (!isa<FactorRuleOpInterface>(op) || isa<ReadOp, ConstrainOp>(op))
    return;
  FactorRule rule = divisionRule(op);
  keepTogether(op, rule);
  FactorAxes factors = factorsOf(op, rule);
  AxisList passed;
  ArrayRef<int64_t> passedBy;
  AxisList own;
  for (unsigned result = 0; result < op->getNumResults(); ++result)
    llvm::append_range(own, summedAxes(rule, result, factors, mesh));
  AxisList dividing;
  for (const AxisList &axes : factors)
    llvm::append_range(dividing, axes);
  for (const auto &group : rule.linear) {
    // An axis that divides the op cannot also be one of its unreduced axes.
    AxisList sums = difference(common(op, group), dividing, mesh);
    if (mesh.getSize(sums) > mesh.getSize(passed) &&
        pays(op, group, sums, own)) {
      passed = sums;
      passedBy = group;
    }
  }
  for (OpOperand &operand : op->getOpOperands())
    taken[&operand] = llvm::is_contained(passedBy, operand.getOperandNumber())
                          ? passed
                          : AxisList();
  for (OpResult result : op->getResults()) {
    AxisList axes = summedAxes(rule, result.getResultNumber(), factors, mesh);
    llvm::append_range(axes, passed);
    made[result] = normalizedSet(axes, mesh);
    // A product of a count's parts would be rounded before their sum, and the
    // same product of the count itself, where that is there already, after it.
    if (isCount(result) && !isAccumulated(result))
      caps[result] = {};
  }
}

/// One pass over the function with the caps known so far. True when a value has
/// uses that take it as sums over different axes, which lowers its cap.
bool Sums::settle(func::FuncOp function, Leave leave) {
  Block &body = function.getBody().front();
  for (BlockArgument argument : function.getArguments())
    if (auto sharding = function.getArgAttrOfType<ShardingAttr>(
            argument.getArgNumber(),
            RotaDialect::ShardingAttrHelper::getNameStr()))
      made[argument] = normalizedSet(sharding.getUnreduced(), mesh);
  for (Operation &op : body) {
    if (isa<AccumulateOp, AuxiliaryLossOp, func::ReturnOp>(op)) {
      for (OpOperand &operand : op.getOpOperands()) {
        taken[&operand] =
            intersection(available(operand.get()), leave(operand), mesh);
      }
      continue;
    }
    visit(&op);
    if (auto constrain = dyn_cast<ConstrainOp>(op)) {
      ArrayRef<AxisRefAttr> kept = constrain.getSharding().getUnreduced();
      AxisList axes = intersection(available(constrain.getValue()), kept, mesh);
      taken[&constrain.getValueMutable()] = axes;
      made[constrain.getResult()] = axes;
    }
  }
  bool changed = false;
  for (BlockArgument argument : body.getArguments())
    changed |= lowerCap(argument);
  for (Operation &op : body)
    for (Value result : op.getResults())
      changed |= lowerCap(result);
  return changed;
}

/// A use that takes a sum unreduced gains nothing while another use needs it
/// summed up. All uses then take the axes that every use supports.
bool Sums::lowerCap(Value value) {
  AxisList axes = available(value);
  if (axes.empty())
    return false;
  AxisList common = axes;
  for (OpOperand &use : value.getUses())
    common = intersection(common, keptBy(use), mesh);
  bool changesUse = llvm::any_of(
      value.getUses(), [&](OpOperand &use) { return takenAs(use) != common; });
  if (value.hasOneUse() || common == axes || !changesUse)
    return false;
  caps[value] = common;
  return true;
}
