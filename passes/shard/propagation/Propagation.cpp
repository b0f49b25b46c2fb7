// SPDX-License-Identifier: Apache-2.0
//
// Propagation of shardings by factor rules, in the style of Shardy: the tensors
// of an op vote on its factors, and the result extends the tensors.
#include "passes/shard/propagation/Propagation.h"

#include "ir/rota/model/Model.h"

using namespace mlir;
using namespace mlir::rota;

static int64_t bytesOf(Value value) {
  auto tensor = cast<RankedTensorType>(value.getType());
  return llvm::divideCeil(
      tensor.getNumElements() * tensor.getElementTypeBitWidth(), 8);
}

static ShardingAttr borderSharding(DictionaryAttr attributes) {
  return attributes ? attributes.getAs<ShardingAttr>(
                          RotaDialect::ShardingAttrHelper::getNameStr())
                    : ShardingAttr();
}

static ShardingAttr computeSharding(Operation *user, FlatSymbolRefAttr name) {
  ParamOp param = lookupParam(user, name.getAttr());
  if (param && param.getPlacement())
    return param.getPlacement()->getCompute();
  return {};
}

Propagation::Propagation(func::FuncOp function, RuleOf ruleOf)
    : function(function), ruleOf(ruleOf), mesh(meshOf(function)) {
  seed();
}

ValueDivision &Propagation::division(Value value) {
  auto [place, isNew] = divisions.try_emplace(value);
  if (isNew) {
    auto tensor = dyn_cast<RankedTensorType>(value.getType());
    size_t rank = tensor ? tensor.getRank() : 0;
    place->second.dimensions.resize(rank);
    place->second.priorities.resize(rank, Priority::None);
    place->second.open.resize(rank, true);
  }
  return place->second;
}

void Propagation::fix(Value value, ShardingAttr sharding, Priority priority) {
  ValueDivision &fixed = division(value);
  if (sharding.getDimensions().size() != fixed.dimensions.size())
    return;
  fixed.dimensions = dimensionAxes(sharding, mesh);
  fixed.priorities.assign(fixed.dimensions.size(), priority);
  fixed.open = llvm::map_to_vector(sharding.getDimensions(),
                                   [](DimensionShardingAttr dimension) -> bool {
                                     return dimension.getOpen();
                                   });
  llvm::append_range(fixed.whole, sharding.getReplicated());
  llvm::append_range(fixed.whole, sharding.getUnreduced());
}

/// The sequences of the first argument, tokens or an activation, each whole:
/// data that the runtime makes of tokens. Null where the function does not say.
ShardingAttr Propagation::sequenceSharding() {
  if (function.getNumArguments() == 0)
    return {};
  ShardingAttr first = borderSharding(function.getArgAttrDict(0));
  if (!first || first.getDimensions().empty())
    return {};
  return makeSharding(function.getContext(),
                      {dimensionAxes(first, mesh).front(), {}}, {}, mesh);
}

void Propagation::seed() {
  for (BlockArgument argument : function.getArguments())
    if (ShardingAttr sharding =
            borderSharding(function.getArgAttrDict(argument.getArgNumber())))
      fix(argument, sharding, Priority::Border);
  for (Operation &op : function.getBody().front()) {
    if (auto read = dyn_cast<ReadOp>(op)) {
      if (ShardingAttr sharding = computeSharding(read, read.getParamAttr()))
        fix(read.getResult(), sharding, Priority::Parameter);
    } else if (auto constrain = dyn_cast<ConstrainOp>(op)) {
      fix(constrain.getResult(), constrain.getSharding(), Priority::Border);
    } else if (auto positions = dyn_cast<DocumentPositionsOp>(op)) {
      if (ShardingAttr sharding = sequenceSharding())
        fix(positions.getResult(), sharding, Priority::Border);
    }
  }
}

void Propagation::run() {
  Block &body = function.getBody().front();
  for (Priority least :
       {Priority::Parameter, Priority::Border, Priority::None}) {
    settled.clear();
    auto visit = [&](Operation &op) {
      return settled.insert(&op).second && update(&op, least);
    };
    bool changed = true;
    while (changed) {
      changed = false;
      for (Operation &op : body)
        changed |= visit(op);
      for (Operation &op : llvm::reverse(body))
        changed |= visit(op);
    }
  }
}

bool Propagation::extend(Value value, ShardingAttr sharding,
                         Priority priority) {
  DimensionAxes axes = dimensionAxes(sharding, mesh);
  return extend(value, axes, SmallVector<Priority>(axes.size(), priority));
}

bool Propagation::extend(Value value, ArrayRef<AxisList> dimensions,
                         ArrayRef<Priority> priorities) {
  ValueDivision &current = division(value);
  if (current.dimensions.size() != dimensions.size())
    return false;
  bool changed = false;
  for (size_t dim = 0; dim < dimensions.size(); ++dim) {
    AxisList &axes = current.dimensions[dim];
    if (!current.open[dim] || axes == dimensions[dim] ||
        !isPrefix(axes, dimensions[dim], mesh))
      continue;
    auto isTaken = [&](AxisRefAttr ref) {
      if (overlapsAny(ref, current.whole, mesh))
        return true;
      for (auto [other, list] : llvm::enumerate(current.dimensions))
        if (other != dim && overlapsAny(ref, list, mesh))
          return true;
      return false;
    };
    if (llvm::any_of(dimensions[dim], isTaken))
      continue;
    if (axes.empty())
      current.priorities[dim] = priorities[dim];
    axes = dimensions[dim];
    changed = true;
  }
  if (changed) {
    settled.erase(value.getDefiningOp());
    for (Operation *user : value.getUsers())
      settled.erase(user);
  }
  return changed;
}

bool Propagation::update(Operation *op, Priority least) {
  if (auto accumulate = dyn_cast<AccumulateOp>(op)) {
    ShardingAttr sharding = computeSharding(op, accumulate.getParamAttr());
    return sharding &&
           extend(accumulate.getValue(), sharding, Priority::Parameter);
  }
  bool changed = false;
  if (isa<func::ReturnOp>(op)) {
    if (least == Priority::Parameter)
      return false;
    for (OpOperand &operand : op->getOpOperands())
      if (ShardingAttr sharding = borderSharding(
              function.getResultAttrDict(operand.getOperandNumber())))
        changed |= extend(operand.get(), sharding, Priority::Border);
    return changed;
  }
  if (!isa<FactorRuleOpInterface>(op) || isa<ReadOp>(op))
    return false;
  auto [place, isNew] = rules.try_emplace(op);
  if (isNew)
    place->second = ruleOf(op);
  const FactorRule &rule = place->second;
  Decision decision = decide(op, rule, least);
  auto offer = [&](Value value, const FactorRule::Dimensions &tensor) {
    SmallVector<Priority> priorities;
    for (ArrayRef<int64_t> dimension : tensor) {
      Priority priority = Priority::Parameter;
      for (int64_t factor : dimension)
        if (!decision.factors[factor].empty())
          priority = std::min(priority, decision.priorities[factor]);
      priorities.push_back(priority);
    }
    changed |= extend(value, composeDimensions(tensor, decision.factors, mesh),
                      priorities);
  };
  for (auto [operand, tensor] : llvm::zip(op->getOperands(), rule.operands))
    offer(operand, tensor);
  for (auto [result, tensor] : llvm::zip(op->getResults(), rule.results))
    offer(result, tensor);
  return changed;
}

namespace {
/// The axes that one tensor asks for on a factor.
struct Vote {
  AxisList axes;
  Priority priority;
  int64_t bytes;
  size_t number; // among the votes on the factor
};
} // namespace

/// One list of axes out of all votes on a factor: the first by priority and
/// bytes, made longer by those that agree with it. `bytes` is what would move
/// if the factor were not divided so.
static Vote elect(SmallVectorImpl<Vote> &votes, MeshAttr mesh) {
  if (votes.empty())
    return {{}, Priority::None, 0, 0};
  llvm::sort(votes, [](const Vote &a, const Vote &b) {
    return std::tuple(a.priority, a.bytes, b.number) >
           std::tuple(b.priority, b.bytes, a.number);
  });
  Vote elected = votes.front();
  for (const Vote &vote : llvm::drop_begin(votes)) {
    if (isPrefix(elected.axes, vote.axes, mesh))
      elected.axes = vote.axes;
    else if (!isPrefix(vote.axes, elected.axes, mesh))
      continue;
    elected.bytes += vote.bytes;
  }
  return elected;
}

/// With `first`, that factor gets its axes before the others.
Decision Propagation::decide(Operation *op, const FactorRule &rule,
                             Priority least, std::optional<size_t> first) {
  SmallVector<SmallVector<Vote>> votes(rule.sizes.size());
  auto collect = [&](Value value, const FactorRule::Dimensions &tensor) {
    ValueDivision &known = division(value);
    DimensionAxes visible = known.dimensions;
    for (auto [axes, priority] : llvm::zip(visible, known.priorities))
      if (priority < least)
        axes.clear();
    FactorAxes said = projectFactors(rule, tensor, visible, mesh);
    for (auto [factors, priority] : llvm::zip(tensor, known.priorities))
      for (int64_t factor : factors)
        if (!said[factor].empty())
          votes[factor].push_back(
              {said[factor], priority, bytesOf(value), votes[factor].size()});
  };
  for (auto [operand, tensor] : llvm::zip(op->getOperands(), rule.operands))
    collect(operand, tensor);
  for (auto [result, tensor] : llvm::zip(op->getResults(), rule.results))
    collect(result, tensor);

  SmallVector<Vote> elected = llvm::map_to_vector(
      votes, [&](SmallVectorImpl<Vote> &of) { return elect(of, mesh); });
  auto order = llvm::to_vector(llvm::seq<size_t>(0, elected.size()));
  llvm::sort(order, [&](size_t a, size_t b) {
    return std::tuple(a == first, elected[a].priority, elected[a].bytes, b) >
           std::tuple(b == first, elected[b].priority, elected[b].bytes, a);
  });
  Decision decision;
  decision.factors.resize(elected.size());
  for (Vote &vote : elected)
    decision.priorities.push_back(vote.priority);
  AxisList taken;
  for (size_t factor : order)
    for (AxisRefAttr ref : elected[factor].axes) {
      if (overlapsAny(ref, taken, mesh))
        break;
      decision.factors[factor].push_back(ref);
      taken.push_back(ref);
    }
  dropStrided(rule, decision.factors, mesh);
  return decision;
}

FactorAxes Propagation::factorsOf(Operation *op) {
  return decide(op, ruleOf(op), Priority::None).factors;
}

SmallVector<FactorAxes, 2> Propagation::choicesOf(Operation *op) {
  FactorRule rule = ruleOf(op);
  SmallVector<FactorAxes, 2> choices{decide(op, rule, Priority::None).factors};
  for (size_t factor = 0; factor < rule.sizes.size(); ++factor) {
    FactorAxes other = decide(op, rule, Priority::None, factor).factors;
    if (!llvm::is_contained(choices, other))
      choices.push_back(std::move(other));
  }
  return choices;
}

ShardingAttr Propagation::shardingOf(Value value) {
  ShardingAttr divided =
      makeSharding(function.getContext(), division(value).dimensions, {}, mesh);
  auto argument = dyn_cast<BlockArgument>(value);
  ShardingAttr given =
      argument
          ? borderSharding(function.getArgAttrDict(argument.getArgNumber()))
          : ShardingAttr();
  if (!given)
    return divided;
  return ShardingAttr::get(function.getContext(), divided.getDimensions(),
                           given.getUnreduced(), given.getReplicated());
}
