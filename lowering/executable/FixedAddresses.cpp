// SPDX-License-Identifier: Apache-2.0
//
// Places that the frame gives, and destinations.
#include "lowering/executable/FixedAddresses.h"
#include "ir/rota/model/Model.h"
#include "ir/rota/model/Update.h"

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

bool isSameAddress(const BufferAddress &a, const BufferAddress &b) {
  return a.field == b.field && a.offset == b.offset;
}

FailureOr<FixedAddresses>
FixedAddresses::get(func::FuncOp function, ArrayRef<Operation *> ops,
                    const FunctionAddresses &frame, const PartPlaces &places,
                    const ValueUses &uses, ConstantTables &tables,
                    const ProgramMesh &mesh) {
  FixedAddresses fixed(frame, places);
  fixed.placeTables(function);
  for (auto [argument, address] :
       llvm::zip_equal(function.getArguments(), frame.arguments))
    fixed.addresses[argument] = address;
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
  for (Operation *op : llvm::reverse(ops)) {
    fixed.setSource(op, uses);
    if (places.isPlaced(op))
      fixed.setParts(isa<ConcatOp>(op) ? ValueRange(op->getOperands())
                                       : ValueRange());
  }
  for (Operation *op : ops)
    if (places.isPlaced(op))
      fixed.setParts(op->getResults());
  return fixed;
}

const BufferAddress *FixedAddresses::lookup(Value value) const {
  auto found = addresses.find(viewedValue(value));
  return found == addresses.end() ? nullptr : &found->second;
}

/// The address of the parameter that a read or accumulate names; null without.
const FunctionAddresses::ParamOffsets *
FixedAddresses::paramOffsets(Operation *op) const {
  auto name = op->getAttrOfType<FlatSymbolRefAttr>("param").getAttr();
  auto found = frame->params.find(lookupParam(op, name).getOperation());
  return found == frame->params.end() ? nullptr : &found->second;
}

/// Offsets of the sums and tables of the function's layer, in the order of its
/// forward, as Observation says.
void FixedAddresses::placeTables(func::FuncOp function) {
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
LogicalResult FixedAddresses::placeMean(ObservedMeanOp op) {
  auto found = means.find(op.getName());
  int64_t columns =
      cast<RankedTensorType>(op.getResult().getType()).getDimSize(0);
  if (found == means.end() || found->second.columns != columns)
    return op.emitOpError("expected the layer's forward to observe counts of ")
           << columns << " columns as '" << op.getName() << "'";
  addresses[op] = BufferAddress{memory::Observed, found->second.offset};
  return success();
}

LogicalResult FixedAddresses::placeParameter(Operation *op) {
  if (!isa<ReadOp, AccumulateOp>(op))
    return success();
  const FunctionAddresses::ParamOffsets *address = paramOffsets(op);
  if (!address)
    return op->emitOpError("expected a parameter of this function's block, got "
                           "'")
           << op->getAttrOfType<FlatSymbolRefAttr>("param").getValue() << "'";
  if (auto read = dyn_cast<ReadOp>(op))
    addresses[read] = BufferAddress{memory::Parameters, address->value};
  return success();
}

void FixedAddresses::placeConstant(Operation *op, ConstantTables &tables,
                                   const ProgramMesh &mesh) {
  auto address = [&](int64_t offset) {
    addresses[op->getResult(0)] = BufferAddress{memory::Constants, offset};
  };
  if (isa<DocumentPositionsOp>(op))
    addresses[op->getResult(0)] = BufferAddress{memory::Positions, 0};
  else if (auto table = dyn_cast<RotaryTableOp>(op))
    address(tables.add(table));
  else if (auto offset = dyn_cast<ShardOffsetOp>(op))
    address(tables.add(offset, mesh));
  else if (auto cotangent = dyn_cast<AuxiliaryCotangentOp>(op))
    address(tables.add(cotangent));
  else if (auto constant = dyn_cast<arith::ConstantOp>(op))
    if (auto data = dyn_cast<DenseElementsAttr>(constant.getValue()))
      address(tables.add(data));
}

BufferAddress FixedAddresses::gradientAddress(AccumulateOp op) const {
  return {memory::Gradients, paramOffsets(op)->gradient};
}

BufferAddress FixedAddresses::auxiliaryAddress(AuxiliaryLossOp op) const {
  return {memory::Auxiliary,
          4 * int64_t(llvm::find(auxiliary, op) - auxiliary.begin())};
}

/// Whether an op of the function computes the value and it has no address yet.
bool FixedAddresses::isFree(Value value) const {
  Operation *source = viewedValue(value).getDefiningOp();
  return source && isComputed(source) && !lookup(value);
}

/// Whether no argument at `address` is read once `value` is computed there.
bool FixedAddresses::mayLieAt(const BufferAddress &address, Value value,
                              const ValueUses &uses) const {
  auto result = cast<OpResult>(viewedValue(value));
  Operation *op = places->firstWriter(value);
  return llvm::all_of(
      llvm::zip_equal(op->getBlock()->getArguments(), frame->arguments),
      [&](auto pair) {
        auto [argument, other] = pair;
        Operation *last = uses.lastUser(argument, op);
        return !isSameAddress(address, other) || !last ||
               last->isBeforeInBlock(op) ||
               (last == op && op == result.getOwner() &&
                canOverwrite(op, result.getResultNumber(), argument));
      });
}

/// Computes what leaves the function where it leaves.
void FixedAddresses::setDestinations(Operation *op, const ValueUses &uses) {
  if (auto leave = dyn_cast<func::ReturnOp>(op))
    for (auto [value, address] :
         llvm::zip_equal(leave.getOperands(), frame->results))
      if (isFree(value) && mayLieAt(address, value, uses))
        addresses[viewedValue(value)] = address;
  if (auto loss = dyn_cast<AuxiliaryLossOp>(op))
    if (isFree(loss.getSum()))
      addresses[viewedValue(loss.getSum())] = auxiliaryAddress(loss);
  if (auto observe = dyn_cast<ObserveOp>(op))
    if (isFree(observe.getCounts()))
      addresses[viewedValue(observe.getCounts())] = observedAddress(observe);
  if (auto accumulate = dyn_cast<AccumulateOp>(op)) {
    OpResult value = accumulate.getAddingResult();
    if (!value || !isFree(value) || !uses.hasOneReader(value))
      return;
    addresses[value] = gradientAddress(accumulate);
    accumulators[value] = gradientType(
        lookupParam(accumulate, accumulate.getParamAttr().getAttr()));
  }
}

/// Sets the addresses of parts of a value that has one.
void FixedAddresses::setParts(ValueRange parts) {
  for (Value part : parts) {
    PartPlaces::Place place = places->placeOf(part);
    auto whole = addresses.find(place.root);
    if (whole != addresses.end() && places->isPart(part))
      addresses[viewedValue(part)] = {whole->second.field,
                                      whole->second.offset + place.offset};
  }
}

/// Computes what only a collective reads that works in place where its result
/// goes.
void FixedAddresses::setSource(Operation *op, const ValueUses &uses) {
  if (!isa<CollectiveOpInterface>(op))
    return;
  for (auto [operand, result] : cast<TaskOpInterface>(op).getInPlacePairs()) {
    Value value = op->getOperand(operand);
    const BufferAddress *address = lookup(op->getResult(result));
    if (address && isFree(value) && uses.hasOneReader(value) &&
        mayLieAt(*address, value, uses))
      addresses[viewedValue(value)] = BufferAddress(*address);
  }
}

} // namespace rota::lowering
