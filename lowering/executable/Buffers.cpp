// SPDX-License-Identifier: Apache-2.0
//
// Buffer assignment inside one function: views, destinations, liveness, reuse.
#include "lowering/executable/Buffers.h"
#include "ir/rota/Model.h"
#include "lowering/executable/AddKernel.h"
#include "lowering/memory/FreeList.h"

#include "mlir/IR/Remarks.h"

using namespace mlir;
using namespace mlir::rota;

namespace rota::lowering {

int64_t tensorBytes(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  return tensor.getNumElements() * tensor.getElementTypeBitWidth() / 8;
}

int64_t ConstantTables::add(RotaryTableOp op) {
  RotaryTable table;
  table.positions = cast<RankedTensorType>(op.getType()).getDimSize(0);
  table.scale = op.getScale().convertToDouble();
  table.frequencies.assign(op.getFrequencies().begin(),
                           op.getFrequencies().end());
  for (const RotaryTable &other : list)
    if (other.positions == table.positions && other.scale == table.scale &&
        other.frequencies == table.frequencies)
      return other.offset;
  table.offset = packer.add(tensorBytes(op.getType()));
  list.push_back(table);
  return table.offset;
}

int64_t ConstantTables::add(ShardOffsetOp op, const ProgramMesh &mesh) {
  ShardOffset added;
  added.axes = mesh.axesOf(op.getAxes());
  added.factor = op.getFactor();
  for (const ShardOffset &other : offsets)
    if (other.axes == added.axes && other.factor == added.factor)
      return other.offset;
  added.offset = packer.add(tensorBytes(op.getType()));
  offsets.push_back(added);
  return added.offset;
}

int ConstantTables::auxiliaryLoss(StringRef name) const {
  auto found = llvm::find_if(
      losses, [&](const AuxiliaryLoss &loss) { return loss.name == name; });
  return int(found - losses.begin());
}

int64_t ConstantTables::add(AuxiliaryCotangentOp op) {
  if (cotangents < 0)
    cotangents = packer.add(4 * int64_t(losses.size()));
  return cotangents + 4 * auxiliaryLoss(op.getName());
}

namespace {

/// What is known of a value that has bytes of its own.
struct Buffer {
  std::optional<BufferAddress> place; // fixed, or given when it is defined
  bool scratch = false;     // takes scratch from definition to last use
  int lastUse = -1;         // op number
  unsigned uses = 0;        // other than views
  bool accumulates = false; // its op adds into `place`
};

class Assignment {
public:
  Assignment(func::FuncOp function, const FunctionPlaces &places,
             ConstantTables &tables, CollectiveTable &collectives,
             KernelLibrary &library)
      : function(function), places(places), tables(tables),
        collectives(collectives), library(library) {
    for (Operation &op : function.getBody().front())
      ops.push_back(&op);
  }

  FailureOr<FunctionBuffers> run() {
    for (auto [argument, place] :
         llvm::zip_equal(function.getArguments(), places.arguments))
      buffers[argument].place = place;
    for (int i = 0, count = ops.size(); i < count; ++i)
      if (failed(scan(ops[i], i)))
        return failure();
    for (Operation *op : ops)
      setDestinations(op);
    for (Operation *op : llvm::reverse(ops))
      setSource(op);
    for (int i = 0, count = ops.size(); i < count; ++i)
      if (failed(lower(ops[i], i)))
        return failure();
    result.scratchBytes = scratch.peak();
    return std::move(result);
  }

private:
  static bool isView(Operation *op) { return isa<ReshapeOp, NameOp>(op); }
  static bool computes(Operation *op) {
    return !isView(op) && !op->hasTrait<OpTrait::IsTerminator>() &&
           !isa<ReadOp, AccumulateOp, RotaryTableOp, ShardOffsetOp,
                AuxiliaryLossOp, AuxiliaryCotangentOp, arith::ConstantOp>(op);
  }

  /// The value whose bytes `value` shows.
  static Value root(Value value) {
    while (Operation *op = value.getDefiningOp()) {
      if (!isView(op))
        break;
      value = op->getOperand(0);
    }
    return value;
  }
  Buffer &bufferOf(Value value) { return buffers[root(value)]; }

  /// Notes uses and the places of what is not computed.
  LogicalResult scan(Operation *op, int number) {
    for (Type type : op->getOperandTypes())
      if (getElementTypeOrSelf(type).isF64())
        return op->emitOpError("expected f32, bf16 or i32 values, got ")
               << type;
    for (Value operand : op->getOperands()) {
      Buffer &buffer = bufferOf(operand);
      buffer.lastUse = number;
      buffer.uses += !isView(op);
    }
    if (isa<ReadOp, AccumulateOp>(op)) {
      auto name = op->getAttrOfType<FlatSymbolRefAttr>("param").getAttr();
      if (!places.params.contains(lookupParamOf(op, name)))
        return op->emitOpError("expected a parameter of this function's block, "
                               "got '")
               << name.getValue() << "'";
    }
    if (auto read = dyn_cast<ReadOp>(op))
      buffers[read].place = BufferAddress{
          memory::Parameters, paramPlace(op, read.getParamAttr()).value, {}};
    if (auto table = dyn_cast<RotaryTableOp>(op))
      buffers[table.getResult()].place =
          BufferAddress{memory::Constants, tables.add(table), {}};
    if (auto offset = dyn_cast<ShardOffsetOp>(op))
      buffers[offset.getResult()].place = BufferAddress{
          memory::Constants, tables.add(offset, collectives.mesh()), {}};
    if (auto cotangent = dyn_cast<AuxiliaryCotangentOp>(op))
      buffers[cotangent.getResult()].place =
          BufferAddress{memory::Constants, tables.add(cotangent), {}};
    if (auto loss = dyn_cast<AuxiliaryLossOp>(op))
      auxiliary.push_back(loss);
    if (auto constant = dyn_cast<arith::ConstantOp>(op))
      if (auto data = dyn_cast<DenseElementsAttr>(constant.getValue()))
        buffers[constant.getResult()].place =
            BufferAddress{memory::Scratch, 0, data};
    return success();
  }

  static Operation *lookupParamOf(Operation *op, StringAttr name) {
    return lookupParam(op, name).getOperation();
  }
  const FunctionPlaces::ParamPlace &paramPlace(Operation *op,
                                               FlatSymbolRefAttr symbol) {
    return places.params.find(lookupParamOf(op, symbol.getAttr()))->second;
  }
  BufferAddress gradientPlace(AccumulateOp op) {
    return {memory::Gradients, paramPlace(op, op.getParamAttr()).gradient, {}};
  }

  /// The sums that a function adds to auxiliary losses are in its order.
  BufferAddress auxiliaryPlace(AuxiliaryLossOp op) {
    return {memory::Auxiliary,
            4 * int64_t(llvm::find(auxiliary, op) - auxiliary.begin()),
            {}};
  }

  /// Whether `value` is computed here, and may be where one likes.
  bool isFree(Value value) {
    Operation *source = root(value).getDefiningOp();
    return source && computes(source) && !bufferOf(value).place;
  }

  /// Computes what only an all-reduce reads where its sum leaves.
  void setSource(Operation *op) {
    auto sum = dyn_cast<AllReduceOp>(op);
    if (sum && buffers[sum.getResult()].place && isFree(sum.getInput()) &&
        bufferOf(sum.getInput()).uses == 1)
      bufferOf(sum.getInput()).place = buffers[sum.getResult()].place;
  }

  /// Computes what leaves the function where it leaves.
  void setDestinations(Operation *op) {
    if (auto leave = dyn_cast<func::ReturnOp>(op))
      for (auto [value, place] :
           llvm::zip_equal(leave.getOperands(), places.results))
        if (isFree(value))
          bufferOf(value).place = place;
    if (auto loss = dyn_cast<AuxiliaryLossOp>(op))
      if (isFree(loss.getSum()))
        bufferOf(loss.getSum()).place = auxiliaryPlace(loss);
    if (auto accumulate = dyn_cast<AccumulateOp>(op)) {
      Value value = accumulate.getValue();
      if (isFree(value) && bufferOf(value).uses == 1 &&
          canAccumulate(cast<OpResult>(root(value)))) {
        bufferOf(value).place = gradientPlace(accumulate);
        bufferOf(value).accumulates = true;
      }
    }
  }

  static bool canAccumulate(OpResult value) {
    return isa<EinsumOp, EmbeddingGradOp, LaunchOp>(value.getOwner());
  }

  LogicalResult lower(Operation *op, int number) {
    if (auto leave = dyn_cast<func::ReturnOp>(op))
      for (auto [value, place] :
           llvm::zip_equal(leave.getOperands(), places.results))
        addCopy(leave, value, place);
    else if (auto loss = dyn_cast<AuxiliaryLossOp>(op))
      addCopy(loss, loss.getSum(), auxiliaryPlace(loss));
    else if (auto accumulate = dyn_cast<AccumulateOp>(op))
      return addToGradient(accumulate, number);
    if (!computes(op))
      return release(op, number), success();
    TaskStep step{TaskStep::Kind::Kernels, op->getLoc()};
    if (failed(plan(op, step)))
      return failure();
    placeOperands(op, step);
    placeResults(op, number, step);
    runWithTemporaries(std::move(step));
    release(op, number);
    return success();
  }

  LogicalResult plan(Operation *op, TaskStep &step) {
    if (auto einsum = dyn_cast<EinsumOp>(op)) {
      auto gemm = planGemm(einsum);
      if (failed(gemm))
        return failure();
      step.kind = TaskStep::Kind::Gemm;
      step.gemm = *gemm;
      step.gemm.gemm.accumulate = buffers[einsum.getResult()].accumulates;
      return success();
    }
    if (auto collective = dyn_cast<CollectiveOpInterface>(op)) {
      step.kind = TaskStep::Kind::Collective;
      step.collective = collectives.add(collective);
      return success();
    }
    SmallVector<bool> accumulate;
    for (Value value : op->getResults())
      accumulate.push_back(buffers[value].accumulates);
    auto kernels = planKernels(op, accumulate, library);
    if (failed(kernels))
      return failure();
    step.kernels = std::move(*kernels);
    return success();
  }

  void placeOperands(Operation *op, TaskStep &step) {
    for (Value operand : op->getOperands())
      step.operands.push_back(*bufferOf(operand).place);
  }

  void placeResults(Operation *op, int number, TaskStep &step) {
    for (OpResult value : op->getResults()) {
      Buffer &buffer = buffers[value];
      buffer.lastUse = std::max(buffer.lastUse, number);
      if (!buffer.place) {
        Buffer *dying = findInPlace(op, value, number, step.kernels);
        buffer.scratch = true;
        if (dying) {
          buffer.place = dying->place;
          dying->scratch = false; // its bytes are the result's now
        } else {
          buffer.place = BufferAddress{
              memory::Scratch, scratch.allocate(scratchBytes(value)), {}};
        }
      }
      step.results.push_back(*buffer.place);
    }
  }

  /// A dying operand's buffer that `value` may take over, or null.
  Buffer *findInPlace(Operation *op, OpResult value, int number,
                      const KernelPlan &plan) {
    SmallVector<std::pair<unsigned, unsigned>> pairs(plan.inPlace);
    if (isa<AllReduceOp>(op))
      pairs.push_back({0, 0});
    for (auto [operand, resultNumber] : pairs) {
      if (resultNumber != value.getResultNumber())
        continue;
      Value source = root(op->getOperand(operand));
      Buffer &buffer = buffers[source];
      bool once = llvm::count_if(op->getOperands(), [&](Value other) {
                    return root(other) == source;
                  }) == 1;
      if (once && buffer.scratch && buffer.lastUse == number &&
          scratchBytes(source) == scratchBytes(value))
        return &buffer;
    }
    return nullptr;
  }

  static int64_t scratchBytes(Value value) {
    return memory::alignUp(tensorBytes(value.getType()));
  }

  void runWithTemporaries(TaskStep step) {
    for (int64_t bytes : step.kernels.temporaries)
      step.temporaries.push_back(
          {memory::Scratch, scratch.allocate(memory::alignUp(bytes)), {}});
    for (auto [place, bytes] :
         llvm::zip_equal(step.temporaries, step.kernels.temporaries))
      scratch.free(place.offset, memory::alignUp(bytes));
    result.steps.push_back(std::move(step));
  }

  /// Frees the scratch of what `op` is the last to use.
  void release(Operation *op, int number) {
    auto close = [&](Value value) {
      auto found = buffers.find(root(value));
      if (found == buffers.end() || !found->second.scratch ||
          found->second.lastUse != number)
        return;
      scratch.free(found->second.place->offset, scratchBytes(found->first));
      found->second.scratch = false;
    };
    llvm::for_each(op->getOperands(), close);
    llvm::for_each(op->getResults(), close);
  }

  LogicalResult addToGradient(AccumulateOp op, int number) {
    Value value = op.getValue();
    if (bufferOf(value).accumulates)
      return success();
    TaskStep step{TaskStep::Kind::Kernels, op.getLoc()};
    auto kernels = planAdd(cast<RankedTensorType>(value.getType()), library);
    if (failed(kernels))
      return failure();
    step.kernels = std::move(*kernels);
    step.operands.push_back(*bufferOf(value).place);
    step.results.push_back(gradientPlace(op));
    result.steps.push_back(std::move(step));
    release(op, number);
    return success();
  }

  /// Copies what was not computed where `leave` has it leave.
  void addCopy(Operation *leave, Value value, BufferAddress place) {
    const BufferAddress &from = *bufferOf(value).place;
    if (!from.data && from.field == place.field && from.offset == place.offset)
      return;
    TaskStep step{TaskStep::Kind::Copy, leave->getLoc()};
    step.bytes = tensorBytes(value.getType());
    remark::passed(leave->getLoc(), remark::RemarkOpts::name("copied")
                                        .category("executable")
                                        .function(function.getSymName()))
        << "result copied: it is an argument, a parameter or another result"
        << remark::metric("Bytes", step.bytes);
    step.operands.push_back(from);
    step.results.push_back(place);
    result.steps.push_back(std::move(step));
  }

  func::FuncOp function;
  const FunctionPlaces &places;
  ConstantTables &tables;
  CollectiveTable &collectives;
  KernelLibrary &library;
  SmallVector<Operation *> ops;
  SmallVector<AuxiliaryLossOp> auxiliary; // among them
  llvm::DenseMap<Value, Buffer> buffers;  // by root
  memory::FreeList scratch;
  FunctionBuffers result;
};

} // namespace

FailureOr<FunctionBuffers> assignBuffers(func::FuncOp function,
                                         const FunctionPlaces &places,
                                         ConstantTables &tables,
                                         CollectiveTable &collectives,
                                         KernelLibrary &library) {
  return Assignment(function, places, tables, collectives, library).run();
}

} // namespace rota::lowering
