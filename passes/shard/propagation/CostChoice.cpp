// SPDX-License-Identifier: Apache-2.0
//
// A descent over the divisions of the ops that costs divide.
#include "passes/shard/propagation/CostChoice.h"

#include "ir/rota/experts/CountedRows.h"
#include "ir/rota/model/Model.h"
#include "mlir/IR/Remarks.h"
#include "passes/shard/reshard/ReshardPlanner.h"

using namespace mlir;
using namespace mlir::rota;

CostChoice::CostChoice(func::FuncOp function, Propagation &propagation)
    : propagation(propagation), mesh(meshOf(function)) {
  findContests(function);
  search();
  explain();
}

/// Descends from what propagation says, and from each start at which all ops
/// take another of their options: some save bytes together alone. The cheapest
/// end is kept, the first of equal ones.
void CostChoice::search() {
  llvm::SetVector<Value> touched;
  size_t starts = 1;
  for (auto &[op, choice] : choices) {
    touched.insert(op->operand_begin(), op->operand_end());
    touched.insert(op->result_begin(), op->result_end());
    starts = std::max(starts, choice.options.size());
  }
  std::optional<int64_t> least;
  SmallVector<size_t> best;
  for (size_t start = 0; start < starts; ++start) {
    for (auto &[op, choice] : choices)
      choice.taken = std::min(start, choice.options.size() - 1);
    while (improve()) {
    }
    int64_t cost = costOf(touched);
    if (least && cost >= *least)
      continue;
    least = cost;
    best = llvm::map_to_vector(
        choices, [](const auto &entry) { return entry.second.taken; });
  }
  for (auto [entry, taken] : llvm::zip_equal(choices, best))
    entry.second.taken = taken;
}

void CostChoice::findContests(func::FuncOp function) {
  for (Operation &op : function.getBody().front()) {
    if (!op.hasTrait<DividedByCost>())
      continue;
    SmallVector<FactorAxes, 2> options = propagation.choicesOf(&op);
    if (options.size() == 1)
      continue;
    for (const FactorAxes &other : llvm::drop_begin(options))
      for (auto [axes, instead] : llvm::zip(options.front(), other)) {
        llvm::append_range(contested, difference(axes, instead, mesh));
        llvm::append_range(contested, difference(instead, axes, mesh));
      }
    choices[&op].options = std::move(options);
  }
  contested = normalizedSet(contested, mesh);
}

FactorAxes CostChoice::factorsOf(Operation *op) {
  auto place = choices.find(op);
  return place == choices.end() ? propagation.factorsOf(op)
                                : place->second.options[place->second.taken];
}

ShardingAttr CostChoice::compose(Operation *op,
                                 const FactorRule::Dimensions &dimensions,
                                 ArrayRef<AxisRefAttr> unreduced) {
  return makeSharding(op->getContext(),
                      composeDimensions(dimensions, factorsOf(op), mesh),
                      unreduced, mesh);
}

ShardingAttr CostChoice::madeAs(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op || !isa<FactorRuleOpInterface>(op) || isa<ReadOp, ConstrainOp>(op)) {
    ShardingAttr sharding = propagation.shardingOf(value);
    return makeSharding(value.getContext(), dimensionAxes(sharding, mesh), {},
                        mesh);
  }
  FactorRule rule = divisionRule(op);
  unsigned number = cast<OpResult>(value).getResultNumber();
  AxisList sums = summedAxes(rule, number, factorsOf(op), mesh);
  return compose(op, rule.results[number], intersection(sums, contested, mesh));
}

ShardingAttr CostChoice::neededBy(OpOperand &use) {
  Operation *op = use.getOwner();
  auto of = [&](ShardingAttr sharding) {
    return makeSharding(op->getContext(), dimensionAxes(sharding, mesh), {},
                        mesh);
  };
  if (auto accumulate = dyn_cast<AccumulateOp>(op)) {
    ParamOp param = lookupParam(op, accumulate.getParamAttr().getAttr());
    if (param.getPlacement())
      return of(param.getPlacement()->getCompute());
  }
  if (auto constrain = dyn_cast<ConstrainOp>(op))
    return of(propagation.shardingOf(constrain.getResult()));
  if (isa<func::ReturnOp>(op)) {
    auto function = cast<func::FuncOp>(op->getParentOp());
    auto given = function.getResultAttrOfType<ShardingAttr>(
        use.getOperandNumber(), RotaDialect::ShardingAttrHelper::getNameStr());
    return of(given ? given : propagation.shardingOf(use.get()));
  }
  FactorRule rule = divisionRule(op);
  return compose(op, rule.operands[use.getOperandNumber()], {});
}

int64_t CostChoice::costOf(Value value) {
  ShardingAttr from = madeAs(value);
  llvm::MapVector<ShardingAttr, SmallVector<OpOperand *>> uses;
  for (OpOperand &use : value.getUses())
    uses[neededBy(use)].push_back(&use);
  int64_t cost = 0;
  for (auto &[to, readers] : uses)
    if (to != from)
      cost += costOf(value, from, to, countedRows(value, readers));
  return cost;
}

int64_t CostChoice::costOf(Value value, ShardingAttr from, ShardingAttr to,
                           const std::optional<CountedRows> &rows) {
  auto type = cast<RankedTensorType>(value.getType());
  std::optional<double> fill;
  Attribute key;
  if (rows) {
    fill = rows->fill;
    key = FloatAttr::get(Float64Type::get(value.getContext()), *fill);
  }
  auto [place, isNew] = costs.try_emplace({type, from, to, key});
  if (isNew)
    place->second = planReshard(type, from, to, mesh, fill).cost().weight();
  return place->second;
}

int64_t CostChoice::costOf(const llvm::SetVector<Value> &values) {
  int64_t sum = 0;
  for (Value value : values)
    sum += costOf(value);
  return sum;
}

/// The bytes that the changes save in the function.
int64_t CostChoice::saved(ArrayRef<Change> changes) {
  llvm::SetVector<Value> touched;
  for (auto [op, option] : changes) {
    touched.insert(op->operand_begin(), op->operand_end());
    touched.insert(op->result_begin(), op->result_end());
  }
  int64_t before = costOf(touched);
  SmallVector<size_t, 2> previous;
  for (auto [op, option] : changes)
    previous.push_back(std::exchange(choices[op].taken, option));
  int64_t after = costOf(touched);
  for (auto [change, option] : llvm::zip(changes, previous))
    choices[change.first].taken = option;
  return before - after;
}

/// All changes of one op, and of two that share an operand or of which one uses
/// a result of the other.
SmallVector<SmallVector<CostChoice::Change, 2>> CostChoice::changes() {
  SmallVector<SmallVector<Change, 2>> result;
  auto others = [&](Operation *op, auto body) {
    for (size_t option = 0; option < choices[op].options.size(); ++option)
      if (option != choices[op].taken)
        body(Change(op, option));
  };
  auto share = [](Operation *a, Operation *b) {
    return llvm::any_of(b->getOperands(), [&](Value operand) {
      return operand.getDefiningOp() == a ||
             llvm::is_contained(a->getOperands(), operand);
    });
  };
  for (auto first = choices.begin(); first != choices.end(); ++first)
    others(first->first, [&](Change change) {
      result.push_back({change});
      for (auto second = std::next(first); second != choices.end(); ++second)
        if (share(first->first, second->first))
          others(second->first,
                 [&](Change other) { result.push_back({change, other}); });
    });
  return result;
}

/// Makes the change that saves most. False where none saves anything.
bool CostChoice::improve() {
  SmallVector<Change, 2> best;
  int64_t most = 0;
  for (SmallVector<Change, 2> &candidate : changes())
    if (int64_t less = saved(candidate); less > most) {
      most = less;
      best = std::move(candidate);
    }
  for (auto [op, option] : best)
    choices[op].taken = option;
  return most > 0;
}

/// A remark for each op: how it is divided, and what the next best option would
/// cost more.
void CostChoice::explain() {
  auto textOf = [&](Operation *op) {
    FactorRule rule = divisionRule(op);
    std::string text;
    llvm::raw_string_ostream(text) << compose(
        op, rule.results.front(), summedAxes(rule, 0, factorsOf(op), mesh));
    return text;
  };
  for (auto &[op, choice] : choices) {
    size_t taken = choice.taken, next = taken;
    int64_t extra = 0;
    for (size_t option = 0; option < choice.options.size(); ++option)
      if (option != taken)
        if (int64_t more = -saved(Change(op, option));
            next == taken || more < extra) {
          next = option;
          extra = more;
        }
    std::string result = textOf(op);
    choice.taken = next;
    std::string instead = textOf(op);
    choice.taken = taken;
    remark::passed(
        op->getLoc(),
        remark::RemarkOpts::name("divided-by-cost").category("shard"))
        << remark::reason("'{0}' is divided so that the fewest bytes move",
                          op->getName().getStringRef())
        << remark::metric("Result", result)
        << remark::metric("Instead", instead) << remark::metric("Saved", extra);
  }
}
