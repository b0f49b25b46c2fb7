// SPDX-License-Identifier: Apache-2.0
//
// Writes a function's ops as steps and hands out scratch.
#include "lowering/executable/Buffers.h"
#include "lowering/executable/DeferredSums.h"
#include "lowering/memory/FreeList.h"

#include "mlir/IR/Remarks.h"

#include <limits>

using namespace mlir;
using namespace mlir::rota;

namespace rota::lowering {
namespace {

/// The values that lie in scratch at some point of a task.
class ScratchLayout {
public:
  const BufferAddress &add(Value value) {
    return alive[value] = {memory::Scratch, list.allocate(bytesOf(value))};
  }
  /// `value` lies on the bytes of `dying` from now on.
  const BufferAddress &replace(Value dying, Value value) {
    BufferAddress address = alive.at(dying);
    alive.erase(dying);
    return alive[value] = address;
  }
  void remove(Value value) {
    list.free(alive.at(value).offset, bytesOf(value));
    alive.erase(value);
  }
  bool contains(Value value) const { return alive.contains(value); }
  const BufferAddress &at(Value value) const { return alive.at(value); }

  /// Places for the duration of one step, but for `kept` ones, which stay.
  SmallVector<BufferAddress>
  addTemporaries(ArrayRef<int64_t> sizes,
                 llvm::SmallDenseSet<unsigned> kept = {}) {
    SmallVector<BufferAddress> addresses;
    for (int64_t bytes : sizes)
      addresses.push_back(
          {memory::Scratch, list.allocate(memory::alignUp(bytes))});
    for (auto [i, address] : llvm::enumerate(addresses))
      if (!kept.contains(i))
        list.free(address.offset, memory::alignUp(sizes[i]));
    return addresses;
  }

  static int64_t bytesOf(Value value) {
    return memory::alignUp(tensorBytes(value.getType()));
  }
  int64_t peak() const { return list.peak(); }

private:
  llvm::DenseMap<Value, BufferAddress> alive; // never views nor parts
  memory::FreeList list;
};

/// Makes a product add to an accumulator of that type, unless it is null.
template <typename Product> void addTo(Type type, Product &product) {
  if (!type)
    return;
  product.accumulate = 1;
  product.typeC = type.isBF16() ? ROTA_BF16 : ROTA_F32;
}

/// Chooses what a device calls for an op.
class StepPlanner {
public:
  StepPlanner(const FixedAddresses &fixed, CollectiveTable &collectives,
              KernelLibrary &library)
      : fixed(fixed), collectives(collectives), library(library) {}

  /// Sets what the step does.
  LogicalResult plan(Operation *op, TaskStep &step) {
    if (auto einsum = dyn_cast<EinsumOp>(op)) {
      auto gemm = planGemm(einsum);
      if (failed(gemm))
        return failure();
      step.kind = TaskStep::Kind::Gemm;
      step.gemm = *gemm;
      addTo(fixed.accumulatorOf(einsum), step.gemm.gemm);
      return success();
    }
    auto grouped = planGroupedGemm(op);
    if (failed(grouped))
      return failure();
    // A device on which counts stay has kernels for it.
    if (*grouped && !library.getEmitters().lookup(op)) {
      step.kind = TaskStep::Kind::GroupedGemm;
      step.grouped = **grouped;
      addTo(fixed.accumulatorOf(op->getResult(0)), step.grouped.gemm);
      return success();
    }
    if (auto collective = dyn_cast<CollectiveOpInterface>(op))
      return planCollective(collective, step);
    auto kernels = planKernels(op, accumulations(op), library);
    if (failed(kernels))
      return failure();
    step.kernels = std::move(*kernels);
    return success();
  }

  /// Whether each result is added to what its buffer holds.
  SmallVector<bool> accumulations(Operation *op) const {
    SmallVector<bool> accumulate;
    for (Value value : op->getResults())
      accumulate.push_back(fixed.accumulates(value));
    return accumulate;
  }

private:
  LogicalResult planCollective(CollectiveOpInterface op, TaskStep &step) {
    step.kind = TaskStep::Kind::Start;
    step.collective = collectives.add(op);
    auto ragged = dyn_cast<RaggedAllToAllOp>(op.getOperation());
    // A GPU's host does not know the counts: there all rows travel.
    if (!ragged || library.getVectorBits() == 0)
      return success();
    step.kind = TaskStep::Kind::StartRows;
    step.exchange = rowExchangeOf(ragged);
    return success();
  }

  const FixedAddresses &fixed;
  CollectiveTable &collectives;
  KernelLibrary &library;
};

class StepWriter {
public:
  StepWriter(func::FuncOp function, const FunctionAddresses &addresses,
             const FixedAddresses &fixed, const PartPlaces &places,
             const ValueUses &uses, CollectiveTable &collectives,
             KernelLibrary &library)
      : function(function), addresses(addresses), fixed(fixed), places(places),
        uses(uses), library(library), planner(fixed, collectives, library),
        sums(library) {}

  FailureOr<FunctionBuffers> write(ArrayRef<Operation *> ops) {
    for (int number = 0, end = int(ops.size()); number < end; ++number) {
      Operation *op = ops[number];
      if (places.isPlaced(op))
        continue;
      waitFor(number, op->getLoc());
      auto both = number + 1 < end ? computeBoth(op, ops[number + 1], number)
                                   : FailureOr<bool>(false);
      if (failed(both))
        return failure();
      if (*both) {
        ++number;
        release(op, number);
        release(ops[number], number);
        continue;
      }
      if (failed(isComputed(op) ? compute(op, number) : leave(op)))
        return failure();
      release(op, number);
    }
    if (failed(sums.addTo(result)))
      return failure();
    result.scratchBytes = scratch.peak();
    return std::move(result);
  }

private:
  BufferAddress addressOf(Value value) const {
    if (const BufferAddress *address = fixed.lookup(value))
      return *address;
    PartPlaces::Place place = places.placeOf(value);
    BufferAddress address = scratch.at(place.root);
    address.offset += place.offset;
    return address;
  }

  /// Waits for the transfers whose results op `number` is the first to use.
  void waitFor(int number, Location loc) {
    llvm::erase_if(open, [&](OpenTransfer &transfer) {
      if (uses.firstUse(transfer.op->getResult(0)) != number)
        return false;
      addWait(transfer.step, loc);
      for (Value operand : transfer.op->getOperands())
        if (uses.lastRead(places.rootOf(operand)) < number)
          close(operand, number);
      return true;
    });
  }

  void addWait(int started, Location loc) {
    TaskStep step{TaskStep::Kind::Wait, loc};
    step.started = started;
    result.steps.push_back(std::move(step));
  }

  LogicalResult compute(Operation *op, int number) {
    if (auto indexed = dyn_cast<IndexOpInterface>(op))
      addCheck(indexed);
    TaskStep step{TaskStep::Kind::Kernels, op->getLoc()};
    if (failed(planner.plan(op, step)))
      return failure();
    for (Value operand : op->getOperands())
      step.operands.push_back(addressOf(operand));
    for (OpResult value : op->getResults())
      step.results.push_back(placeResult(op, value, number));
    step.temporaries =
        scratch.addTemporaries(step.kernels.temporaries, sums.keptBy(step));
    sums.takeFrom(step);
    addLaunches(op, step, planner.accumulations(op), library, result.launches);
    result.steps.push_back(std::move(step));
    if (isa<CollectiveOpInterface>(op))
      addTransfer(op, int(result.steps.size()) - 1);
    return success();
  }

  /// One step for two ops in a row, where the device has kernels for both. All
  /// operands keep their bytes until both are done, but for what the second op
  /// works on in place.
  FailureOr<bool> computeBoth(Operation *op, Operation *next, int number) {
    auto emitter = library.getEmitters().lookupPair(op, next);
    if (!emitter)
      return false;
    auto kernels = emitter(op, next, library);
    if (failed(kernels))
      return failure();
    if (kernels->calls.empty())
      return false;
    waitFor(number + 1, next->getLoc());
    TaskStep step{TaskStep::Kind::Kernels, op->getLoc()};
    step.kernels = std::move(*kernels);
    for (Operation *either : {op, next}) {
      if (auto indexed = dyn_cast<IndexOpInterface>(either))
        addCheck(indexed);
      for (Value operand : either->getOperands())
        step.operands.push_back(addressOf(operand));
      for (OpResult value : either->getResults())
        step.results.push_back(
            placeResult(either, value, either == op ? number : number + 1));
    }
    step.temporaries = scratch.addTemporaries(step.kernels.temporaries);
    addLaunches({op, next}, step, {}, library, result.launches);
    result.steps.push_back(std::move(step));
    return true;
  }

  /// Keeps a transfer open until its result is used, if it is.
  void addTransfer(Operation *op, int step) {
    if (uses.firstUse(op->getResult(0)) < 0)
      addWait(step, op->getLoc());
    else
      open.push_back({op, step});
  }

  void addCheck(IndexOpInterface op) {
    std::optional<int64_t> bound = op.getIndexBound();
    if (!bound)
      return;
    TaskStep step{TaskStep::Kind::Check, op.getLoc()};
    auto type = cast<RankedTensorType>(op.getIndices().getType());
    int64_t least =
        op.allowsNegativeIndices() ? std::numeric_limits<int32_t>::min() : 0;
    step.indices = {type.getNumElements(), least, *bound};
    step.operands.push_back(addressOf(op.getIndices()));
    result.steps.push_back(std::move(step));
  }

  BufferAddress placeResult(Operation *op, OpResult value, int number) {
    if (const BufferAddress *address = fixed.lookup(value))
      return *address;
    if (places.isPart(value)) {
      if (Value root = places.rootOf(value); !scratch.contains(root))
        scratch.add(root);
      return addressOf(value);
    }
    Value dying = findInPlace(op, value, number);
    return dying ? scratch.replace(dying, value) : scratch.add(value);
  }

  /// A dying operand in scratch whose bytes `value` may take over, or null.
  Value findInPlace(Operation *op, OpResult value, int number) {
    for (Value operand : op->getOperands()) {
      Value source = viewedValue(operand); // never a part
      if (scratch.contains(source) && uses.last(source, op) == number &&
          ScratchLayout::bytesOf(source) == ScratchLayout::bytesOf(value) &&
          canOverwrite(op, value.getResultNumber(), source))
        return source;
    }
    return {};
  }

  /// Frees the scratch of what `op` is the last to use.
  void release(Operation *op, int number) {
    for (Value value : op->getOperands())
      close(value, number);
    for (Value value : op->getResults())
      close(value, number);
  }

  void close(Value value, int number) {
    Value source = places.rootOf(value);
    if (scratch.contains(source) && uses.last(source) <= number)
      scratch.remove(source);
  }

  /// Moves what leaves the function to where it leaves if it is not there yet.
  LogicalResult leave(Operation *op) {
    if (auto accumulate = dyn_cast<AccumulateOp>(op))
      return addToGradient(accumulate);
    if (auto loss = dyn_cast<AuxiliaryLossOp>(op))
      addCopy(loss, loss.getSum(), fixed.auxiliaryAddress(loss));
    if (auto observe = dyn_cast<ObserveOp>(op))
      addCopy(observe, observe.getCounts(), fixed.observedAddress(observe));
    if (auto end = dyn_cast<func::ReturnOp>(op))
      return addCopies(end);
    return success();
  }

  LogicalResult addCopies(func::ReturnOp end) {
    for (auto [i, address] : llvm::enumerate(addresses.results)) {
      if (isSameAddress(addressOf(end.getOperand(i)), address))
        continue;
      for (unsigned j = i + 1; j < end.getNumOperands(); ++j)
        if (isSameAddress(addressOf(end.getOperand(j)), address))
          return end.emitOpError("expected result ")
                 << j << " not to be an argument that result " << i
                 << " overwrites";
      addCopy(end, end.getOperand(i), address);
    }
    return success();
  }

  LogicalResult addToGradient(AccumulateOp op) {
    Value value = op.getValue();
    if (fixed.accumulates(value))
      return success();
    TaskStep step{TaskStep::Kind::Kernels, op.getLoc()};
    auto kernels = planKernels(op, {}, library);
    if (failed(kernels))
      return failure();
    step.kernels = std::move(*kernels);
    step.operands.push_back(addressOf(value));
    step.results.push_back(fixed.gradientAddress(op));
    addLaunches(op.getOperation(), step, {}, library, result.launches);
    result.steps.push_back(std::move(step));
    return success();
  }

  void addCopy(Operation *leave, Value value, const BufferAddress &address) {
    BufferAddress from = addressOf(value);
    if (isSameAddress(from, address))
      return;
    TaskStep step{TaskStep::Kind::Copy, leave->getLoc()};
    step.bytes = tensorBytes(value.getType());
    remark::passed(leave->getLoc(), remark::RemarkOpts::name("copied")
                                        .category("executable")
                                        .function(function.getSymName()))
        << "result copied: it is an argument, a parameter or another result"
        << remark::metric("Bytes", step.bytes);
    step.operands.push_back(from);
    step.results.push_back(address);
    result.steps.push_back(std::move(step));
  }

  func::FuncOp function;
  const FunctionAddresses &addresses;
  const FixedAddresses &fixed;
  const PartPlaces &places;
  const ValueUses &uses;
  KernelLibrary &library;
  StepPlanner planner;
  struct OpenTransfer {
    Operation *op;
    int step;
  };
  SmallVector<OpenTransfer> open; // not waited for yet
  DeferredSums sums;
  ScratchLayout scratch;
  FunctionBuffers result;
};

/// Values of f64 are for reference computations.
LogicalResult checkTypes(Operation *op) {
  for (Type type : op->getOperandTypes())
    if (getElementTypeOrSelf(type).isF64())
      return op->emitOpError("expected f32, bf16 or i32 values, got ") << type;
  return success();
}

} // namespace

FailureOr<FunctionBuffers> assignBuffers(func::FuncOp function,
                                         const FunctionAddresses &addresses,
                                         ConstantTables &tables,
                                         CollectiveTable &collectives,
                                         KernelLibrary &library) {
  SmallVector<Operation *> ops;
  for (Operation &op : function.getBody().front()) {
    if (failed(checkTypes(&op)))
      return failure();
    ops.push_back(&op);
  }
  PartPlaces places(ops);
  ValueUses uses(ops, places);
  auto fixed = FixedAddresses::get(function, ops, addresses, places, uses,
                                   tables, collectives.mesh());
  if (failed(fixed))
    return failure();
  return StepWriter(function, addresses, *fixed, places, uses, collectives,
                    library)
      .write(ops);
}

} // namespace rota::lowering
