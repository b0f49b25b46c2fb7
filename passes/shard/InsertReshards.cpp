// SPDX-License-Identifier: Apache-2.0
//
// Puts a reshard wherever a value is not divided as its use needs it.
#include "passes/shard/AxisRules.h"
#include "passes/shard/DescribeOp.h"
#include "passes/shard/Passes.h"
#include "passes/shard/propagation/LengthDimensions.h"
#include "passes/shard/propagation/UnreducedResults.h"

#include "ir/rota/experts/CountedRows.h"
#include "ir/rota/model/Model.h"
#include "mlir/IR/Remarks.h"

namespace mlir::rota {
#define GEN_PASS_DEF_INSERTRESHARDS
#include "passes/shard/Passes.h.inc"
} // namespace mlir::rota

using namespace mlir;
using namespace mlir::rota;

static constexpr StringLiteral kSharding =
    RotaDialect::ShardingAttrHelper::getNameStr();

namespace {
struct InsertReshards : mlir::rota::impl::InsertReshardsBase<InsertReshards> {
  using InsertReshardsBase::InsertReshardsBase;
  void runOnOperation() override;

private:
  LogicalResult repair(func::FuncOp function, const UnreducedResults &leaving);
  LogicalResult repairUse(OpOperand &use, const Sums &sums);
  FailureOr<ShardingAttr> needed(OpOperand &use, const Sums &sums);
  ShardingAttr madeAs(Value value, const Sums &sums);
  LogicalResult reshard(OpOperand &use, ShardingAttr from, ShardingAttr to,
                        const Sums &sums);
  void keep(Value original, Operation *inserted, ShardingAttr from,
            ShardingAttr to, StringRef reason);
  std::optional<CountedRows> countedFor(Value value, ShardingAttr from,
                                        ShardingAttr to, const Sums &sums);
  Value countsAs(const CountedRows &rows, ShardingAttr sharding, Operation *op,
                 const Sums &sums);
  void settleResults(func::FuncOp function, const Sums &sums);
  LogicalResult share(OpOperand &use, ShardingAttr to, const Sums &sums);
  LogicalResult remake(OpOperand &use, ShardingAttr from, ShardingAttr to,
                       const Sums &sums);
  bool isMeant(OpOperand &use, ShardingAttr from, ShardingAttr to);
  LogicalResult refuse(OpOperand &use, ShardingAttr from, ShardingAttr to);
  void settleScalars(func::FuncOp function, const Sums &sums,
                     const UnreducedResults &leaving);

  MeshAttr mesh;
  AxisList axesOf(const AxisRules &table, StringRef rule);

  /// In explicit mode, the axes over which the length of activations may be
  /// gathered and values of experts may move, whether this function has
  /// experts, and the dimensions of its values that are the length.
  AxisList gathered, moved;
  bool hasExperts = false;
  std::optional<LengthDimensions> lengths;
  /// The results of the reshards of this function, by the value resharded.
  llvm::DenseMap<Value, SmallVector<std::pair<ShardingAttr, Value>>> versions;
};
} // namespace

void InsertReshards::runOnOperation() {
  ModuleOp module = getOperation();
  mesh = meshOf(module);
  auto table = AxisRules::parse([&] { return module.emitError(); },
                                &getContext(), gatherRules);
  if (failed(table))
    return signalPassFailure();
  gathered = axesOf(*table, gatherLengthRule);
  moved = axesOf(*table, moveExpertsRule);
  SmallVector<func::FuncOp> functions;
  module.walk([&](func::FuncOp function) {
    if (!function.isExternal())
      functions.push_back(function);
  });
  UnreducedResults leaving(module);
  for (func::FuncOp function : functions)
    if (failed(repair(function, leaving)))
      return signalPassFailure();
  module.walk([&](ParamOp param) {
    std::optional<PlacementAttr> placement = param.getPlacement();
    if (!placement)
      return;
    ShardingAttr compute = placement->getCompute();
    auto summed =
        ShardingAttr::get(&getContext(), compute.getDimensions(),
                          leaving.gradient(param), compute.getReplicated());
    param.setPlacementAttr(
        PlacementAttr::get(&getContext(), placement->getWhole(), summed,
                           placement->getStorage(), placement->getOptimizer()));
  });
}

AxisList InsertReshards::axesOf(const AxisRules &table, StringRef rule) {
  return normalizedSet(table.find(rule).value_or(ArrayRef<AxisRefAttr>()),
                       mesh);
}

LogicalResult InsertReshards::repair(func::FuncOp function,
                                     const UnreducedResults &leaving) {
  Sums sums = leaving.sumsOf(function);
  for (Operation &op : function.getBody().front())
    if (isa<FactorRuleOpInterface>(op)) {
      FactorRule rule = divisionRule(&op);
      writeFactors(&op, sums.factorsOf(&op, rule), mesh);
    }
  settleScalars(function, sums, leaving);
  settleResults(function, sums);
  versions.clear();
  if (mode == ShardingMode::Explicit) {
    lengths.emplace(function);
    hasExperts = llvm::any_of(function.getBody().front(), [](Operation &op) {
      return op.hasTrait<DividedByCost>();
    });
  }
  SmallVector<Operation *> constrains;
  for (Operation &op : llvm::make_early_inc_range(function.getBody().front())) {
    for (OpOperand &operand : op.getOpOperands())
      if (isa<RankedTensorType>(operand.get().getType()) &&
          failed(repairUse(operand, sums)))
        return failure();
    if (auto constrain = dyn_cast<ConstrainOp>(op)) {
      constrain.getResult().replaceAllUsesWith(constrain.getValue());
      constrains.push_back(constrain);
    }
  }
  for (Operation *constrain : constrains)
    constrain->erase();
  return success();
}

/// Writes the unreduced axes of returned scalars. A constant is divided by the
/// number of ranks that it will be summed over.
void InsertReshards::settleScalars(func::FuncOp function, const Sums &sums,
                                   const UnreducedResults &leaving) {
  Operation *terminator = function.getBody().front().getTerminator();
  for (OpOperand &operand : terminator->getOpOperands()) {
    if (!UnreducedResults::isFreeScalar(operand))
      continue;
    unsigned number = operand.getOperandNumber();
    AxisList axes = sums.takenAs(operand);
    if (UnreducedResults::isLoss(function, number) &&
        UnreducedResults::isSplat(operand.get())) {
      axes = leaving.loss();
      auto constant = operand.get().getDefiningOp<arith::ConstantOp>();
      auto value = cast<SplatElementsAttr>(constant.getValue());
      OpBuilder builder(terminator);
      double part =
          value.getSplatValue<APFloat>().convertToDouble() / mesh.getSize(axes);
      auto type = cast<RankedTensorType>(value.getType());
      operand.set(arith::ConstantOp::create(
          builder, constant.getLoc(),
          DenseElementsAttr::get(
              type, builder.getFloatAttr(type.getElementType(), part))));
    }
    function.setResultAttr(number, kSharding,
                           makeSharding(&getContext(), {}, axes, mesh));
  }
}

/// A result is a sum over no more axes than its value is.
void InsertReshards::settleResults(func::FuncOp function, const Sums &sums) {
  Operation *terminator = function.getBody().front().getTerminator();
  for (OpOperand &operand : terminator->getOpOperands()) {
    unsigned number = operand.getOperandNumber();
    auto sharding =
        function.getResultAttrOfType<ShardingAttr>(number, kSharding);
    if (!sharding || sharding.getUnreduced().empty() ||
        UnreducedResults::isSplat(operand.get()))
      continue;
    function.setResultAttr(
        number, kSharding,
        ShardingAttr::get(&getContext(), sharding.getDimensions(),
                          sums.takenAs(operand), sharding.getReplicated()));
  }
}

/// The sharding of a value where it is made.
ShardingAttr InsertReshards::madeAs(Value value, const Sums &sums) {
  auto rank = cast<RankedTensorType>(value.getType()).getRank();
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto function = cast<func::FuncOp>(argument.getOwner()->getParentOp());
    auto sharding = function.getArgAttrOfType<ShardingAttr>(
        argument.getArgNumber(), kSharding);
    if (!sharding)
      return replicatedSharding(&getContext(), rank);
    return makeSharding(&getContext(), dimensionAxes(sharding, mesh),
                        sharding.getUnreduced(), mesh);
  }
  Operation *op = value.getDefiningOp();
  if (auto reshard = dyn_cast<ReshardOp>(op))
    return makeSharding(&getContext(), dimensionAxes(reshard.getTo(), mesh),
                        reshard.getTo().getUnreduced(), mesh);
  if (auto read = dyn_cast<ReadOp>(op)) {
    ParamOp param = lookupParam(read, read.getParamAttr().getAttr());
    if (!param.getPlacement())
      return replicatedSharding(&getContext(), rank);
    return makeSharding(&getContext(),
                        dimensionAxes(param.getPlacement()->getCompute(), mesh),
                        {}, mesh);
  }
  FactorRule rule = divisionRule(op);
  unsigned number = cast<OpResult>(value).getResultNumber();
  return makeSharding(
      &getContext(),
      composeDimensions(rule.results[number], readFactors(op, rule), mesh),
      sums.madeAs(value), mesh);
}

/// The sharding in which the op takes its operand.
FailureOr<ShardingAttr> InsertReshards::needed(OpOperand &use,
                                               const Sums &sums) {
  Operation *op = use.getOwner();
  AxisList unreduced = sums.takenAs(use);
  auto of = [&](ShardingAttr sharding) {
    return makeSharding(&getContext(), dimensionAxes(sharding, mesh), unreduced,
                        mesh);
  };
  auto rank = cast<RankedTensorType>(use.get().getType()).getRank();
  ShardingAttr whole = replicatedSharding(&getContext(), rank);
  if (auto constrain = dyn_cast<ConstrainOp>(op))
    return of(constrain.getSharding());
  if (auto accumulate = dyn_cast<AccumulateOp>(op)) {
    ParamOp param =
        lookupParam(accumulate, accumulate.getParamAttr().getAttr());
    return of(param.getPlacement() ? param.getPlacement()->getCompute()
                                   : whole);
  }
  if (auto terminator = dyn_cast<func::ReturnOp>(op)) {
    auto function = cast<func::FuncOp>(op->getParentOp());
    auto sharding = function.getResultAttrOfType<ShardingAttr>(
        use.getOperandNumber(), kSharding);
    if (!sharding)
      return of(whole);
    if (sharding.getDimensions().size() != size_t(rank))
      return function.emitOpError("expected a sharding with ")
             << rank << " dimensions for result " << use.getOperandNumber()
             << ", got " << sharding.getDimensions().size();
    return of(sharding);
  }
  FactorRule rule = divisionRule(op);
  return makeSharding(&getContext(),
                      composeDimensions(rule.operands[use.getOperandNumber()],
                                        readFactors(op, rule), mesh),
                      unreduced, mesh);
}

LogicalResult InsertReshards::repairUse(OpOperand &use, const Sums &sums) {
  auto to = needed(use, sums);
  if (failed(to))
    return failure();
  // settleScalars has divided a constant loss already.
  if (isa<func::ReturnOp>(use.getOwner()) &&
      UnreducedResults::isSplat(use.get()) &&
      cast<RankedTensorType>(use.get().getType()).getRank() == 0)
    return success();
  if (Sums::takesShare(use) && !to->getUnreduced().empty())
    return share(use, *to, sums);
  ShardingAttr from = madeAs(use.get(), sums);
  if (from == *to)
    return success();
  if (getElementTypeOrSelf(use.get()).isInteger(1))
    return remake(use, from, *to, sums);
  return reshard(use, from, *to, sums);
}

/// The operand becomes an equal share for each rank of the axes over which it
/// is taken as a sum.
LogicalResult InsertReshards::share(OpOperand &use, ShardingAttr to,
                                    const Sums &sums) {
  OpBuilder builder(use.getOwner());
  Location loc = use.getOwner()->getLoc();
  auto type = cast<RankedTensorType>(use.get().getType());
  double part = 1.0 / double(mesh.getSize(to.getUnreduced()));
  auto factor = arith::ConstantOp::create(
      builder, loc,
      DenseElementsAttr::get(
          type, builder.getFloatAttr(type.getElementType(), part)));
  auto shared = arith::MulFOp::create(builder, loc, use.get(), factor);
  for (Operation *op : {factor.getOperation(), shared.getOperation()}) {
    FactorRule rule = divisionRule(op);
    writeFactors(
        op,
        projectFactors(rule, rule.results[0], dimensionAxes(to, mesh), mesh),
        mesh);
  }
  for (OpOperand &operand : shared->getOpOperands())
    if (failed(repairUse(operand, sums)))
      return failure();
  use.set(shared);
  return success();
}

/// Conditions are not sent: a copy of the op that makes them is divided as the
/// use needs it.
LogicalResult InsertReshards::remake(OpOperand &use, ShardingAttr from,
                                     ShardingAttr to, const Sums &sums) {
  Operation *op = use.get().getDefiningOp();
  if (!op)
    return use.getOwner()->emitError("expected a condition divided as ")
           << to << ", got " << from;
  unsigned number = cast<OpResult>(use.get()).getResultNumber();
  OpBuilder builder(use.getOwner());
  Operation *copy = builder.clone(*op);
  FactorRule rule = divisionRule(copy);
  writeFactors(
      copy,
      projectFactors(rule, rule.results[number], dimensionAxes(to, mesh), mesh),
      mesh);
  for (OpOperand &operand : copy->getOpOperands())
    if (failed(repairUse(operand, sums)))
      return failure();
  use.set(copy->getResult(number));
  return success();
}

/// True for a reshard that explicit mode allows: summing up, with or without
/// scattering the result, gathering or cutting the length of activations over
/// the axes of the rule 'gather/length', and any move over those of
/// 'move/experts' where there are experts.
bool InsertReshards::isMeant(OpOperand &use, ShardingAttr from,
                             ShardingAttr to) {
  AxisList added;
  for (auto [dim, pair] : llvm::enumerate(
           llvm::zip(dimensionAxes(from, mesh), dimensionAxes(to, mesh)))) {
    auto [before, after] = pair;
    bool isLength = lengths->contains(use.get(), dim);
    for (AxisList *axes : {&before, &after})
      llvm::erase_if(*axes, [&](AxisRefAttr ref) {
        return (isLength && overlapsAny(ref, gathered, mesh)) ||
               (hasExperts && overlapsAny(ref, moved, mesh));
      });
    if (!isPrefix(before, after, mesh))
      return false;
    llvm::append_range(added, difference(after, before, mesh));
  }
  return difference(added, from.getUnreduced(), mesh).empty();
}

static std::string reasonFor(OpOperand &use, ShardingAttr from) {
  if (Operation *producer = use.get().getDefiningOp();
      producer && !from.getUnreduced().empty())
    return "partial sums of " + describe(producer);
  if (auto accumulate = dyn_cast<AccumulateOp>(use.getOwner()))
    return ("gradient of '" + accumulate.getParam() + "'").str();
  if (isa<func::ReturnOp>(use.getOwner()))
    return "result " + std::to_string(use.getOperandNumber());
  if (isa<ConstrainOp>(use.getOwner()))
    return "constraint";
  return "operand of " + describe(use.getOwner());
}

LogicalResult InsertReshards::reshard(OpOperand &use, ShardingAttr from,
                                      ShardingAttr to, const Sums &sums) {
  Operation *op = use.getOwner();
  if (mode == ShardingMode::Explicit && !isa<ConstrainOp>(op) &&
      !isMeant(use, from, to))
    return refuse(use, from, to);
  Value original = use.get();
  auto &made = versions[original];
  for (auto &[sharding, version] : made)
    if (sharding == to) {
      use.set(version);
      return success();
    }
  // A version that is summed up already is the better source.
  Value source = original;
  for (auto &[sharding, version] : made)
    if (!from.getUnreduced().empty() && sharding.getUnreduced().empty() &&
        to.getUnreduced().empty()) {
      source = version;
      from = sharding;
    }
  std::string reason = reasonFor(use, from);
  // Axes that stay unreduced are spelled alike on both sides, sub-axes too.
  AxisList summed = difference(from.getUnreduced(), to.getUnreduced(), mesh);
  bool areNamedAlike = llvm::all_of(to.getUnreduced(), [&](AxisRefAttr axis) {
    return llvm::is_contained(from.getUnreduced(), axis);
  });
  if (!areNamedAlike &&
      mesh.getSize(summed) * mesh.getSize(to.getUnreduced()) ==
          mesh.getSize(from.getUnreduced())) {
    llvm::append_range(summed, to.getUnreduced());
    from = ShardingAttr::get(&getContext(), from.getDimensions(), summed, {});
  }
  Operation *inserted;
  OpBuilder builder(op);
  if (auto rows = countedFor(original, from, to, sums)) {
    Value sent = countsAs(*rows, from, op, sums);
    Value received = countsAs(*rows, to, op, sums);
    FloatAttr fill =
        rows->fill < 1 ? builder.getF64FloatAttr(rows->fill) : FloatAttr();
    inserted = ReshardRowsOp::create(builder, op->getLoc(), source.getType(),
                                     source, sent, received, rows->blocks, fill,
                                     from, to, builder.getStringAttr(reason));
  } else {
    inserted =
        ReshardOp::create(builder, op->getLoc(), source.getType(), source, from,
                          to, builder.getStringAttr(reason));
  }
  keep(original, inserted, from, to, reason);
  use.set(inserted->getResult(0));
  return success();
}

/// Remembers `inserted`, a reshard of `original`.
void InsertReshards::keep(Value original, Operation *inserted,
                          ShardingAttr from, ShardingAttr to,
                          StringRef reason) {
  versions[original].push_back({to, inserted->getResult(0)});
  ++insertedReshards;
  std::string fromText, toText;
  llvm::raw_string_ostream(fromText) << from;
  llvm::raw_string_ostream(toText) << to;
  remark::passed(inserted->getLoc(),
                 remark::RemarkOpts::name("reshard").category("shard"))
      << remark::reason("{0}", reason) << remark::metric("From", fromText)
      << remark::metric("To", toText);
}

/// The counted rows of `value` for all of its uses that need it as `to`; none
/// where a rank's rows before or after are no blocks.
std::optional<CountedRows> InsertReshards::countedFor(Value value,
                                                      ShardingAttr from,
                                                      ShardingAttr to,
                                                      const Sums &sums) {
  SmallVector<OpOperand *> uses;
  for (OpOperand &use : value.getUses()) {
    if (isa<ReshardOp, ReshardRowsOp>(use.getOwner()))
      continue;
    auto other = needed(use, sums);
    if (succeeded(other) && *other == to)
      uses.push_back(&use);
  }
  std::optional<CountedRows> rows = countedRows(value, uses);
  if (!rows)
    return std::nullopt;
  for (ShardingAttr sharding : {from, to})
    if (rows->blocks % mesh.getSize(dimensionAxes(sharding, mesh)[1]) != 0)
      return std::nullopt;
  return rows;
}

/// The counts of rows, divided as `sharding` divides the rows, before `op`.
Value InsertReshards::countsAs(const CountedRows &rows, ShardingAttr sharding,
                               Operation *op, const Sums &sums) {
  DimensionAxes dimensions = dimensionAxes(sharding, mesh);
  dimensions.resize(2);
  ShardingAttr to = makeSharding(&getContext(), dimensions, {}, mesh);
  ShardingAttr from = madeAs(rows.counts, sums);
  if (from == to)
    return rows.counts;
  for (auto &[made, version] : versions[rows.counts])
    if (made == to)
      return version;
  OpBuilder builder(op);
  StringRef reason = "counts of rows that travel";
  auto inserted =
      ReshardOp::create(builder, op->getLoc(), rows.counts.getType(),
                        rows.counts, from, to, builder.getStringAttr(reason));
  keep(rows.counts, inserted, from, to, reason);
  return inserted.getResult();
}

/// Explicit mode: both sides must agree.
LogicalResult InsertReshards::refuse(OpOperand &use, ShardingAttr from,
                                     ShardingAttr to) {
  auto diagnostic = use.getOwner()->emitError("expected operand ")
                    << use.getOperandNumber() << " of "
                    << describe(use.getOwner()) << " divided as " << to
                    << ", got " << from
                    << "; 'rota.constrain' says so where it is meant";
  Location made = use.get().getLoc();
  if (Operation *producer = use.get().getDefiningOp())
    diagnostic.attachNote(made) << "made by " << describe(producer);
  else
    diagnostic.attachNote(made) << "a function's argument";
  for (Value other : use.getOwner()->getOperands())
    if (other != use.get())
      diagnostic.attachNote(other.getLoc()) << "another operand";
  return diagnostic;
}
