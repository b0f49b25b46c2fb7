// SPDX-License-Identifier: Apache-2.0
//
// The operations of each function by axis, and a remark on each computation and
// tensor that the ranks of an axis have alike.
#include "passes/shard/DescribeOp.h"
#include "passes/shard/PartOfOp.h"
#include "passes/shard/Passes.h"

#include "ir/rota/experts/Experts.h"
#include "ir/rota/model/Model.h"
#include "mlir/IR/Remarks.h"

namespace mlir::rota {
#define GEN_PASS_DEF_COUNTWORK
#include "passes/shard/Passes.h.inc"
} // namespace mlir::rota

using namespace mlir;
using namespace mlir::rota;

namespace {
/// A computation or a tensor that axes do not divide, in all layers that have
/// it.
struct Undivided {
  Location loc;
  std::string function, text, axes;
  int64_t operations = 0, bytes = 0; // one rank's

  bool isPlacedAs(const Undivided &other) const {
    return std::tie(loc, function, text, axes) ==
           std::tie(other.loc, other.function, other.text, other.axes);
  }
};

struct CountWork : mlir::rota::impl::CountWorkBase<CountWork> {
  using CountWorkBase::CountWorkBase;
  void runOnOperation() override;

private:
  void countOperations(func::FuncOp function);
  void findComputation(Operation *op, const FactorRule &rule,
                       const FactorAxes &factors, const Cost &cost);
  void findTensor(Location loc, Operation *scope, std::string text,
                  RankedTensorType type, ShardingAttr sharding);
  void findMoved(func::FuncOp function);
  void findValues(Operation *scope);
  void findParameter(ParamOp param);
  int64_t callsOf(Operation *scope);
  AxisList undivided(ArrayRef<AxisRefAttr> dividing);
  void emitRemarks();

  MeshAttr mesh;
  AxisList axes; // axes of the mesh whose ranks run the same functions
  DenseMap<StringAttr, int64_t> updates;
  SmallVector<Undivided> computations, tensors;
};
} // namespace

/// Layers that have the functions and parameters of `scope`: 1 for those of the
/// module.
static int64_t layersIn(Operation *scope) {
  auto layer = dyn_cast<LayerOp>(scope);
  if (!layer)
    return 1;
  auto stack = cast<StackOp>(layer->getParentOp());
  int64_t layers = stack.getLayers(), kinds = stack.getPattern().size();
  int64_t count = 0;
  for (auto [number, name] :
       llvm::enumerate(stack.getPattern().getAsRange<FlatSymbolRefAttr>()))
    if (name.getAttr() == layer.getSymNameAttr())
      count += llvm::divideCeil(layers - int64_t(number), kinds);
  return count;
}

/// Runs of each function of an optimizer in a step: one for each layer of each
/// parameter that names it.
static DenseMap<StringAttr, int64_t> countUpdates(ModuleOp module) {
  DenseMap<StringAttr, int64_t> counts;
  RotaDialect::UpdateAttrHelper update(module.getContext());
  RotaDialect::SquaresAttrHelper squares(module.getContext());
  module.walk([&](ParamOp param) {
    for (FlatSymbolRefAttr name :
         {update.getAttr(param), squares.getAttr(param)})
      if (name)
        counts[name.getAttr()] += layersIn(param->getParentOp());
  });
  return counts;
}

/// The function of `op`, or the layer that it stands in: "attention.forward".
static std::string scopeName(Operation *op) {
  std::string name;
  for (; op; op = op->getParentOp())
    if (isa<func::FuncOp, LayerOp>(op)) {
      StringRef own = SymbolTable::getSymbolName(op).getValue();
      name = own.str() + (name.empty() ? "" : "." + name);
    }
  return name;
}

/// The axes of the factors of `op`; those of a gradient are its parameter's.
static FactorAxes factorsOf(Operation *op, const FactorRule &rule,
                            MeshAttr mesh) {
  auto accumulate = dyn_cast<AccumulateOp>(op);
  if (!accumulate)
    return readFactors(op, rule);
  ParamOp param = lookupParam(op, accumulate.getParamAttr().getAttr());
  if (!param.getPlacement())
    return FactorAxes(rule.sizes.size());
  return projectFactors(rule, rule.operands.front(),
                        dimensionAxes(param.getPlacement()->getCompute(), mesh),
                        mesh);
}

/// `factors` without the parts of `axis`.
static FactorAxes without(MeshAxis axis, FactorAxes factors) {
  for (AxisList &list : factors)
    llvm::erase_if(list,
                   [&](AxisRefAttr ref) { return ref.getAxis() == axis; });
  return factors;
}

/// Calls of a function for a microbatch or, of an optimizer's, for a step; the
/// layers that have a parameter of `scope`.
int64_t CountWork::callsOf(Operation *scope) {
  auto function = dyn_cast<func::FuncOp>(scope);
  if (!function)
    return layersIn(scope);
  auto update = updates.find(function.getSymNameAttr());
  return update == updates.end() ? layersIn(scope->getParentOp())
                                 : update->second;
}

AxisList CountWork::undivided(ArrayRef<AxisRefAttr> dividing) {
  return difference(axes, dividing, mesh);
}

/// Sums up the cost of each op as it is, on one rank, and without each axis.
void CountWork::countOperations(func::FuncOp function) {
  double rank = 0, whole = 0;
  SmallVector<double> others(mesh.getSizes().size(), 0);
  for (Operation &op : llvm::make_early_inc_range(function.getBody().front())) {
    auto priced = dyn_cast<CostOpInterface>(op);
    if (!priced)
      continue;
    Cost all = priced.getCost();
    if (all.flops + all.bytesWritten == 0)
      continue;
    FactorRule rule = divisionRule(&op);
    FactorAxes factors = factorsOf(&op, rule, mesh);
    Cost own = costOfPart(&op, rule, factors, mesh).value_or(all);
    rank += own.flops;
    whole += all.flops;
    for (auto [number, sum] : llvm::enumerate(others)) {
      FactorAxes other = without(static_cast<MeshAxis>(number), factors);
      sum += other == factors
                 ? own.flops
                 : costOfPart(&op, rule, other, mesh).value_or(all).flops;
    }
    findComputation(&op, rule, factors, own);
  }
  auto rounded = [](double operations) { return int64_t(operations + 0.5); };
  RotaDialect::WorkAttrHelper(&getContext())
      .setAttr(function,
               WorkAttr::get(&getContext(), rounded(rank), rounded(whole),
                             llvm::map_to_vector(others, rounded)));
}

/// Remembers an op that some axis does not divide.
void CountWork::findComputation(Operation *op, const FactorRule &rule,
                                const FactorAxes &factors, const Cost &cost) {
  AxisList dividing;
  for (const AxisList &list : factors)
    llvm::append_range(dividing, list);
  AxisList repeated = undivided(dividing);
  if (repeated.empty())
    return;
  int64_t layers = callsOf(op->getParentOp());
  Undivided found{op->getLoc(),
                  scopeName(op),
                  describe(op),
                  axesText(repeated),
                  layers * int64_t(cost.flops + 0.5),
                  layers * int64_t(cost.bytesWritten + 0.5)};
  auto *same = llvm::find_if(computations, [&](const Undivided &other) {
    return found.isPlacedAs(other);
  });
  if (same == computations.end()) {
    computations.push_back(std::move(found));
    return;
  }
  same->operations += found.operations;
  same->bytes += found.bytes;
}

/// Remembers a tensor of `scope`, a function or what has it, that some axis
/// does not divide. `type` is the whole one.
void CountWork::findTensor(Location loc, Operation *scope, std::string text,
                           RankedTensorType type, ShardingAttr sharding) {
  AxisList held =
      undivided(sharding ? dividingAxes(sharding) : SmallVector<AxisRefAttr>());
  if (held.empty() || type.getRank() == 0)
    return;
  int64_t part =
      llvm::product_of(sharding ? partShape(type.getShape(), sharding, mesh)
                                : llvm::to_vector(type.getShape()));
  int64_t bytes = callsOf(scope) * part *
                  int64_t(llvm::divideCeil(type.getElementTypeBitWidth(), 8));
  tensors.push_back(
      {loc, scopeName(scope), std::move(text), axesText(held), 0, bytes});
}

/// Finds tensors that reshards put together.
void CountWork::findMoved(func::FuncOp function) {
  auto find = [&](auto reshard) {
    findTensor(reshard.getLoc(), function, reshard.getReason().str(),
               cast<RankedTensorType>(reshard.getResult().getType()),
               reshard.getTo());
  };
  for (Operation &op : function.getBody().front()) {
    if (auto reshard = dyn_cast<ReshardOp>(op))
      find(reshard);
    else if (auto rows = dyn_cast<ReshardRowsOp>(op))
      find(rows);
  }
}

/// Finds what the functions of `scope` take and make: each value once.
void CountWork::findValues(Operation *scope) {
  for (Role role :
       {Role::Tokens, Role::Targets, Role::InputActivation,
        Role::OutputActivation, Role::InputCotangent, Role::OutputCotangent,
        Role::Residual, Role::CotangentResidual})
    for (const FunctionPort &port : sourcesIn(scope, role)) {
      if (auto type = dyn_cast<RankedTensorType>(port.type()))
        findTensor(port.value().getLoc(), port.function, port.describe(), type,
                   port.sharding());
    }
}

/// Finds the part of a parameter that rests on a rank, and that of its
/// optimizer.
void CountWork::findParameter(ParamOp param) {
  std::optional<PlacementAttr> placement = param.getPlacement();
  if (!placement)
    return;
  auto type = param.getTensorType().clone(placement->getWhole());
  std::string name = "'" + param.getSymName().str() + "'";
  Operation *scope = param->getParentOp();
  findTensor(param.getLoc(), scope, name + " at rest", type,
             placement->getStorage());
  findTensor(param.getLoc(), scope, "optimizer's part of " + name, type,
             placement->getOptimizer());
}

/// Computations by their operations, then tensors by their bytes.
void CountWork::emitRemarks() {
  auto sort = [](SmallVector<Undivided> &list) {
    llvm::sort(list, [](const Undivided &a, const Undivided &b) {
      return std::tie(b.operations, b.bytes, a.function, a.text, a.axes) <
             std::tie(a.operations, a.bytes, b.function, b.text, b.axes);
    });
  };
  auto emit = [](const Undivided &found, StringRef name) {
    return remark::analysis(
        found.loc, remark::RemarkOpts::name(name).category("shard").function(
                       found.function));
  };
  sort(computations);
  sort(tensors);
  for (const Undivided &found : computations)
    emit(found, "repeated") << remark::reason("{0}", found.text)
                            << remark::metric("Axes", found.axes)
                            << remark::metric("Operations", found.operations)
                            << remark::metric("Bytes", found.bytes);
  for (const Undivided &found : tensors)
    emit(found, "whole") << remark::reason("{0}", found.text)
                         << remark::metric("Axes", found.axes)
                         << remark::metric("Bytes", found.bytes);
  repeated += computations.size();
}

void CountWork::runOnOperation() {
  mesh = meshOf(getOperation());
  axes.clear();
  computations.clear();
  tensors.clear();
  for (auto [number, size] : llvm::enumerate(mesh.getSizes()))
    if (auto axis = static_cast<MeshAxis>(number);
        size > 1 && axis != MeshAxis::Stage)
      axes.push_back(AxisRefAttr::get(&getContext(), axis));
  if (axes.empty())
    return markAllAnalysesPreserved();
  updates = countUpdates(getOperation());
  getOperation().walk([&](Operation *op) {
    if (auto function = dyn_cast<func::FuncOp>(op);
        function && !function.isExternal()) {
      countOperations(function);
      findMoved(function);
    } else if (auto param = dyn_cast<ParamOp>(op)) {
      findParameter(param);
    } else if (isa<ModuleOp, LayerOp>(op)) {
      findValues(op);
    }
  });
  emitRemarks();
}
