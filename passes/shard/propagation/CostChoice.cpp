// SPDX-License-Identifier: Apache-2.0
//
// A descent over the divisions of the ops that costs divide.
#include "passes/shard/propagation/CostChoice.h"

#include "ir/rota/sharding/DividedByCost.h"
#include "mlir/IR/Remarks.h"

using namespace mlir;
using namespace mlir::rota;

CostChoice::CostChoice(func::FuncOp function, Propagation &propagation,
                       DivisionCosts &costs)
    : costs(costs), mesh(costs.getMesh()) {
  findContests(function, propagation);
  search();
  explain();
}

/// Descends from what propagation says, and from each start at which all ops
/// take another of their options: some save bytes together alone. The cheapest
/// end is kept, the first of equal ones.
void CostChoice::search() {
  size_t starts = 1;
  for (auto &[op, choice] : choices) {
    ops.push_back(op);
    starts = std::max(starts, choice.options.size());
  }
  values = DivisionCosts::valuesAround(ops);
  std::optional<double> least;
  SmallVector<size_t> best;
  for (size_t start = 0; start < starts; ++start) {
    for (auto &[op, choice] : choices)
      take(op, std::min(start, choice.options.size() - 1));
    while (improve()) {
    }
    double found = cost();
    if (least && found >= *least)
      continue;
    least = found;
    best = taken();
  }
  for (auto [op, taken] : llvm::zip_equal(ops, best))
    take(op, taken);
}

void CostChoice::take(Operation *op, size_t option) {
  Choice &choice = choices[op];
  choice.taken = option;
  costs.divide(op, choice.options[option]);
}

/// The factors that parts of the axis divide.
static SmallVector<size_t, 1>
factorsWith(AxisRefAttr axis, const FactorAxes &factors, MeshAttr mesh) {
  SmallVector<size_t, 1> list;
  for (auto [factor, axes] : llvm::enumerate(factors))
    if (overlapsAny(axis, axes, mesh))
      list.push_back(factor);
  return list;
}

/// True when the op makes elements with the factor out of ones without it, or
/// the other way round: what it moves, not what says where.
static bool movesAlong(const FactorRule &rule, size_t factor) {
  auto lacks = [&](const FactorRule::Dimensions &tensor) {
    return llvm::none_of(tensor, [&](ArrayRef<int64_t> dimension) {
      return llvm::is_contained(dimension, factor);
    });
  };
  return llvm::any_of(rule.results, lacks) ||
         llvm::any_of(rule.linear, [&](ArrayRef<int64_t> group) {
           return llvm::any_of(group, [&](int64_t operand) {
             return lacks(rule.operands[operand]);
           });
         });
}

/// Adds options in which an axis divides nothing, of axes that all options give
/// to one factor along which elements move: tokens are then gathered, or rows
/// stay sums, instead of sums of all rows.
void CostChoice::addWholeOptions(Operation *op,
                                 SmallVectorImpl<FactorAxes> &options) {
  const FactorRule &rule = costs.ruleOf(op);
  for (uint32_t number = 0; number <= getMaxEnumValForMeshAxis(); ++number) {
    auto axis =
        AxisRefAttr::get(op->getContext(), static_cast<MeshAxis>(number));
    auto divided = factorsWith(axis, options.front(), mesh);
    bool isContested = llvm::any_of(options, [&](const FactorAxes &option) {
      return factorsWith(axis, option, mesh) != divided;
    });
    if (isContested || divided.size() != 1 ||
        !movesAlong(rule, divided.front()))
      continue;
    for (size_t option = 0, end = options.size(); option < end; ++option) {
      FactorAxes whole = options[option];
      AxisList &axes = whole[divided.front()];
      axes = difference(axes, axis, mesh);
      dropStrided(rule, whole, mesh);
      if (!llvm::is_contained(options, whole))
        options.push_back(std::move(whole));
    }
  }
}

void CostChoice::findContests(func::FuncOp function, Propagation &propagation) {
  for (Operation &op : function.getBody().front()) {
    if (!op.hasTrait<DividedByCost>())
      continue;
    SmallVector<FactorAxes> options(propagation.choicesOf(&op));
    addWholeOptions(&op, options);
    if (options.size() == 1)
      continue;
    for (const FactorAxes &other : llvm::drop_begin(options))
      for (auto [axes, instead] : llvm::zip(options.front(), other)) {
        costs.countSums(difference(axes, instead, mesh));
        costs.countSums(difference(instead, axes, mesh));
      }
    choices[&op].options = std::move(options);
  }
}

/// The cost of all ops with a choice after the changes: that of the changed
/// ones alone may leave out a sum that passes on to another, and a search by it
/// could go in circles.
double CostChoice::costWith(ArrayRef<Change> changes) {
  SmallVector<size_t> options = taken();
  SmallVector<std::pair<Operation *, const FactorAxes *>> divisions;
  for (auto [op, option] : changes) {
    auto choice = choices.find(op);
    options[choice - choices.begin()] = option;
    divisions.push_back({op, &choice->second.options[option]});
  }
  auto [place, isNew] = known.try_emplace(std::move(options));
  if (isNew)
    place->second = costs.costIf(divisions, ops, values.getArrayRef());
  return place->second;
}

SmallVector<size_t> CostChoice::taken() const {
  return llvm::map_to_vector(
      choices, [](const auto &entry) { return entry.second.taken; });
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
  double most = 0, before = cost();
  for (SmallVector<Change, 2> &candidate : changes())
    if (double less = before - costWith(candidate); less > most) {
      most = less;
      best = std::move(candidate);
    }
  for (auto [op, option] : best)
    take(op, option);
  return most > 0;
}

/// A remark for each op: how it is divided, and what the next best option would
/// cost more.
void CostChoice::explain() {
  auto textOf = [&](Operation *op) {
    const FactorRule &rule = costs.ruleOf(op);
    const FactorAxes &factors = costs.factorsOf(op);
    std::string text;
    llvm::raw_string_ostream(text) << costs.compose(
        rule.results.front(), factors, summedAxes(rule, 0, factors, mesh));
    return text;
  };
  double least = cost();
  for (auto &[op, choice] : choices) {
    size_t taken = choice.taken, next = taken;
    double extra = 0;
    for (size_t option = 0; option < choice.options.size(); ++option)
      if (option != taken)
        if (double more = costWith(Change(op, option)) - least;
            next == taken || more < extra) {
          next = option;
          extra = more;
        }
    std::string result = textOf(op);
    take(op, next);
    std::string instead = textOf(op);
    take(op, taken);
    remark::passed(
        op->getLoc(),
        remark::RemarkOpts::name("divided-by-cost").category("shard"))
        << remark::reason("'{0}' is divided so that the fewest bytes move",
                          op->getName().getStringRef())
        << remark::metric("Result", result)
        << remark::metric("Instead", instead)
        << remark::metric("Saved", int64_t(extra));
  }
}
