// SPDX-License-Identifier: Apache-2.0
//
// Places that the frame gives, and destinations.
#include "lowering/executable/FixedPlaces.h"
#include "ir/rota/model/Model.h"

using namespace mlir;
using namespace mlir::rota;

namespace rota::lowering {

bool isComputed(Operation *op) {
  if (isa<ViewOpInterface>(op) || op->hasTrait<OpTrait::IsTerminator>())
    return false;
  auto inTask = dyn_cast<TaskOpInterface>(op);
  return !inTask || inTask.getTaskForm() != TaskForm::Address;
}

bool canOverwrite(Operation *op, unsigned result, Value source) {
  auto reads = [&](Value operand) { return viewedValue(operand) == source; };
  auto inTask = dyn_cast<TaskOpInterface>(op);
  return inTask && llvm::count_if(op->getOperands(), reads) == 1 &&
         llvm::any_of(inTask.getInPlacePairs(), [&](auto pair) {
           return pair.second == result && reads(op->getOperand(pair.first));
         });
}

bool isSamePlace(const BufferAddress &a, const BufferAddress &b) {
  return a.field == b.field && a.offset == b.offset;
}

FailureOr<FixedPlaces>
FixedPlaces::get(func::FuncOp function, ArrayRef<Operation *> ops,
                 const FunctionPlaces &frame, const ValueUses &uses,
                 ConstantTables &tables, const ProgramMesh &mesh) {
  FixedPlaces fixed(frame);
  fixed.placeTables(function);
  for (auto [argument, place] :
       llvm::zip_equal(function.getArguments(), frame.arguments))
    fixed.places[argument] = place;
  for (Operation *op : ops) {
    if (failed(fixed.placeParameter(op)))
      return failure();
    if (auto mean = dyn_cast<ObservedMeanOp>(op))
      if (failed(fixed.placeMean(mean)))
        return failure();
    fixed.placeConstant(op, tables, mesh);
    if (auto loss = dyn_cast<AuxiliaryLossOp>(op))
      fixed.auxiliary.push_back(loss);
  }
  for (Operation *op : ops)
    fixed.setDestinations(op, uses);
  for (Operation *op : llvm::reverse(ops))
    fixed.setSource(op, uses);
  return fixed;
}

const BufferAddress *FixedPlaces::lookup(Value value) const {
  auto found = places.find(viewedValue(value));
  return found == places.end() ? nullptr : &found->second;
}

/// The place of the parameter that a read or accumulate names; null without.
const FunctionPlaces::ParamPlace *FixedPlaces::paramPlace(Operation *op) const {
  auto name = op->getAttrOfType<FlatSymbolRefAttr>("param").getAttr();
  auto found = frame->params.find(lookupParam(op, name).getOperation());
  return found == frame->params.end() ? nullptr : &found->second;
}

/// Those of the layer that the function is of, in the order of its forward, as
/// Observation says.
void FixedPlaces::placeTables(func::FuncOp function) {
  auto layer = function->getParentOfType<LayerOp>();
  if (!layer)
    return;
  memory::Packer packer;
  Model::function(layer, FunctionKind::Forward).walk([&](ObserveOp op) {
    auto counts = cast<RankedTensorType>(op.getCounts().getType());
    observed[op] = packer.add(tensorBytes(counts));
    if (!op.isAveraged())
      return;
    int64_t columns = counts.getDimSize(1);
    means.try_emplace(op.getName(), Mean{packer.add(4 * columns), columns});
  });
}

/// C3 of rota.observed_mean: forward observes counts of that name.
LogicalResult FixedPlaces::placeMean(ObservedMeanOp op) {
  auto found = means.find(op.getName());
  int64_t columns =
      cast<RankedTensorType>(op.getResult().getType()).getDimSize(0);
  if (found == means.end() || found->second.columns != columns)
    return op.emitOpError("expected the layer's forward to observe counts of ")
           << columns << " columns as '" << op.getName() << "'";
  places[op] = BufferAddress{memory::Observed, found->second.offset};
  return success();
}

LogicalResult FixedPlaces::placeParameter(Operation *op) {
  if (!isa<ReadOp, AccumulateOp>(op))
    return success();
  const FunctionPlaces::ParamPlace *place = paramPlace(op);
  if (!place)
    return op->emitOpError("expected a parameter of this function's block, got "
                           "'")
           << op->getAttrOfType<FlatSymbolRefAttr>("param").getValue() << "'";
  if (auto read = dyn_cast<ReadOp>(op))
    places[read] = BufferAddress{memory::Parameters, place->value};
  return success();
}

void FixedPlaces::placeConstant(Operation *op, ConstantTables &tables,
                                const ProgramMesh &mesh) {
  auto place = [&](int64_t offset) {
    places[op->getResult(0)] = BufferAddress{memory::Constants, offset};
  };
  if (auto table = dyn_cast<RotaryTableOp>(op))
    place(tables.add(table));
  else if (auto offset = dyn_cast<ShardOffsetOp>(op))
    place(tables.add(offset, mesh));
  else if (auto cotangent = dyn_cast<AuxiliaryCotangentOp>(op))
    place(tables.add(cotangent));
  else if (auto constant = dyn_cast<arith::ConstantOp>(op))
    if (auto data = dyn_cast<DenseElementsAttr>(constant.getValue()))
      place(tables.add(data));
}

BufferAddress FixedPlaces::gradientPlace(AccumulateOp op) const {
  return {memory::Gradients, paramPlace(op)->gradient};
}

BufferAddress FixedPlaces::auxiliaryPlace(AuxiliaryLossOp op) const {
  return {memory::Auxiliary,
          4 * int64_t(llvm::find(auxiliary, op) - auxiliary.begin())};
}

/// Whether an op of the function computes the value and it has no place yet.
bool FixedPlaces::isFree(Value value) const {
  Operation *source = viewedValue(value).getDefiningOp();
  return source && isComputed(source) && !lookup(value);
}

/// Whether no argument at `place` is read once `value` is computed there.
bool FixedPlaces::mayLieAt(const BufferAddress &place, Value value,
                           const ValueUses &uses) const {
  auto result = cast<OpResult>(viewedValue(value));
  Operation *op = result.getOwner();
  return llvm::all_of(
      llvm::zip_equal(op->getBlock()->getArguments(), frame->arguments),
      [&](auto pair) {
        auto [argument, other] = pair;
        Operation *last = uses.lastUser(argument);
        return !isSamePlace(place, other) || !last ||
               last->isBeforeInBlock(op) ||
               (last == op &&
                canOverwrite(op, result.getResultNumber(), argument));
      });
}

/// Computes what leaves the function where it leaves.
void FixedPlaces::setDestinations(Operation *op, const ValueUses &uses) {
  if (auto leave = dyn_cast<func::ReturnOp>(op))
    for (auto [value, place] :
         llvm::zip_equal(leave.getOperands(), frame->results))
      if (isFree(value) && mayLieAt(place, value, uses))
        places[viewedValue(value)] = place;
  if (auto loss = dyn_cast<AuxiliaryLossOp>(op))
    if (isFree(loss.getSum()))
      places[viewedValue(loss.getSum())] = auxiliaryPlace(loss);
  if (auto observe = dyn_cast<ObserveOp>(op))
    if (isFree(observe.getCounts()))
      places[viewedValue(observe.getCounts())] = observedPlace(observe);
  if (auto accumulate = dyn_cast<AccumulateOp>(op)) {
    Value value = viewedValue(accumulate.getValue());
    if (!isFree(value) || !uses.hasOneReader(value))
      return;
    auto result = cast<OpResult>(value);
    auto source = dyn_cast<TaskOpInterface>(result.getOwner());
    if (source && source.canAccumulate(result.getResultNumber())) {
      places[value] = gradientPlace(accumulate);
      accumulated.insert(value);
    }
  }
}

/// Computes what only a collective reads that works in place where its result
/// goes.
void FixedPlaces::setSource(Operation *op, const ValueUses &uses) {
  if (!isa<CollectiveOpInterface>(op))
    return;
  for (auto [operand, result] : cast<TaskOpInterface>(op).getInPlacePairs()) {
    Value value = op->getOperand(operand);
    const BufferAddress *place = lookup(op->getResult(result));
    if (place && isFree(value) && uses.hasOneReader(value) &&
        mayLieAt(*place, value, uses))
      places[viewedValue(value)] = BufferAddress(*place);
  }
}

} // namespace rota::lowering
