// SPDX-License-Identifier: Apache-2.0
//
// The functions of a layer, joined.
#include "passes/shard/propagation/LayerChoice.h"

#include "ir/rota/sharding/DividedByCost.h"
#include "passes/shard/propagation/CostChoice.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"

#include <unordered_map>

using namespace mlir;
using namespace mlir::rota;

namespace {
/// One function of all functions of a layer, which stands in the layer as long
/// as this object lives. Its arguments are those that no function makes, its
/// results those that no function takes as a residual. Composite ops whose rows
/// are divided are whole.
class JoinedFunctions {
public:
  explicit JoinedFunctions(LayerOp layer);
  ~JoinedFunctions() { joined.erase(); }

  func::FuncOp function() { return joined; }
  /// The op that stands for one of a function; null for other ops.
  Operation *copyOf(Operation *op) const { return copies.lookupOrNull(op); }

private:
  void append(func::FuncOp function);
  Value copyOf(BlockArgument argument, func::FuncOp function);
  void copy(Operation &op);
  void saveValues();
  void finish();

  func::FuncOp joined;
  OpBuilder builder;
  SmallVector<RoleEdge> edges; // from results and arguments to arguments
  IRMapping copies;            // of values and ops
  SmallVector<DictionaryAttr> argumentAttributes, resultAttributes;
  SmallVector<Value> results;
  std::unordered_multimap<size_t, Operation *> known; // by hash
  llvm::DenseMap<Operation *, func::FuncOp> firstIn;
};
} // namespace

JoinedFunctions::JoinedFunctions(LayerOp layer)
    : builder(OpBuilder::atBlockEnd(&layer.getBody().front())),
      edges(roleEdgesIn(layer)) {
  joined = func::FuncOp::create(builder, layer.getLoc(), "joined",
                                builder.getFunctionType({}, {}));
  builder.setInsertionPointToEnd(joined.addEntryBlock());
  for (func::FuncOp function : functionsIn(layer))
    if (!function.isExternal())
      append(function);
  saveValues();
  finish();
}

void JoinedFunctions::append(func::FuncOp function) {
  for (BlockArgument argument : function.getArguments())
    copies.map(argument, copyOf(argument, function));
  for (Operation &op : function.getBody().front().without_terminator()) {
    copy(op);
    firstIn.try_emplace(copyOf(&op), function);
  }
  FunctionRoles roles(function);
  Operation *terminator = function.getBody().front().getTerminator();
  for (auto [number, value] : llvm::enumerate(terminator->getOperands())) {
    if (isResidual(roles.results()[number]))
      continue;
    results.push_back(copies.lookup(value));
    resultAttributes.push_back(function.getResultAttrDict(number));
  }
}

/// The value that another function has for the argument, else a new one.
Value JoinedFunctions::copyOf(BlockArgument argument, func::FuncOp function) {
  unsigned number = argument.getArgNumber();
  FunctionPort port{function, /*isResult=*/false, number};
  auto edge = llvm::find_if(
      edges, [&](const RoleEdge &other) { return other.user == port; });
  if (edge != edges.end() && !edge->source.function.isExternal())
    return copies.lookup(edge->source.value());
  argumentAttributes.push_back(function.getArgAttrDict(number));
  return joined.getBody().addArgument(argument.getType(), argument.getLoc());
}

/// Takes the op that is there already for the same op on the same values, else
/// adds one.
void JoinedFunctions::copy(Operation &op) {
  Operation *made = builder.clone(op, copies);
  if (!isMemoryEffectFree(made))
    return;
  size_t hash = OperationEquivalence::computeHash(
      made, OperationEquivalence::directHashValue,
      OperationEquivalence::ignoreHashValue,
      OperationEquivalence::IgnoreLocations);
  for (auto [place, end] = known.equal_range(hash); place != end; ++place)
    if (OperationEquivalence::isEquivalentTo(
            place->second, made, OperationEquivalence::exactValueMatch,
            /*markEquivalent=*/nullptr,
            OperationEquivalence::IgnoreLocations)) {
      copies.map(&op, place->second);
      copies.map(op.getResults(), place->second->getResults());
      made->erase();
      return;
    }
  known.emplace(hash, made);
}

/// Puts a `rota.name`, which is divided as propagation says, between a value of
/// floats and the later functions that read it: it costs what a residual does.
void JoinedFunctions::saveValues() {
  for (Operation &op : llvm::make_early_inc_range(joined.getBody().front()))
    for (Value value : op.getResults()) {
      auto readsSaved = [&](OpOperand &use) {
        return firstIn.lookup(use.getOwner()) != firstIn.lookup(&op);
      };
      if (isa<ReadOp>(op) || !isa<FloatType>(getElementTypeOrSelf(value)) ||
          llvm::none_of(value.getUses(), readsSaved))
        continue;
      builder.setInsertionPointAfter(&op);
      auto saved = NameOp::create(builder, op.getLoc(), "saved", value);
      firstIn[saved] = firstIn.lookup(&op);
      value.replaceUsesWithIf(saved, readsSaved);
    }
  builder.setInsertionPointToEnd(&joined.getBody().front());
}

void JoinedFunctions::finish() {
  func::ReturnOp::create(builder, joined.getLoc(), results);
  joined.setFunctionType(builder.getFunctionType(
      joined.getBody().getArgumentTypes(), ValueRange(results).getTypes()));
  joined.setAllArgAttrs(argumentAttributes);
  joined.setAllResultAttrs(resultAttributes);
}

LayerChoice::LayerChoice(LayerOp layer) {
  auto isDivided = [](Operation *op) { return op->hasTrait<DividedByCost>(); };
  bool isAny = false;
  layer.walk([&](Operation *op) { isAny |= isDivided(op); });
  if (!isAny)
    return;
  JoinedFunctions joined(layer);
  Propagation propagation(joined.function());
  propagation.run();
  DivisionCosts costs(joined.function(), propagation);
  CostChoice(joined.function(), propagation, costs);
  sums = costs.countedSums();
  layer.walk([&](Operation *op) {
    if (Operation *made = isDivided(op) ? joined.copyOf(op) : nullptr)
      divisions[op] = costs.factorsOf(made);
  });
}

void LayerChoice::divide(func::FuncOp function, DivisionCosts &costs) const {
  costs.countSums(sums);
  for (Operation &op : function.getBody().front())
    if (auto chosen = divisions.find(&op); chosen != divisions.end())
      costs.divide(&op, chosen->second);
}
