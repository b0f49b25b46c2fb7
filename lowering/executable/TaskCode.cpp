// SPDX-License-Identifier: Apache-2.0
//
// Emits tasks: addresses from the frame, then calls of the runtime's services.
#include "lowering/executable/TaskCode.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

using namespace mlir;

namespace rota::lowering {
namespace {

class FunctionWriter {
public:
  FunctionWriter(ModuleOp module, mlir::Location loc, StringRef symbol,
                 const FunctionBuffers &buffers)
      : module(module), buffers(buffers), b(loc, module.getContext()),
        symbol(symbol), pointer(LLVM::LLVMPointerType::get(b.getContext())),
        nothing(LLVM::LLVMVoidType::get(b.getContext())) {}

  void write() {
    b.setInsertionPointToEnd(module.getBody());
    auto function = LLVM::LLVMFuncOp::create(
        b, symbol, LLVM::LLVMFunctionType::get(nothing, {pointer, pointer}));
    Block *entry = function.addEntryBlock(b);
    b.setInsertionPointToStart(entry);
    context = entry->getArgument(0);
    frame = entry->getArgument(1);
    size_t arguments = 0;
    for (const TaskStep &step : buffers.steps)
      for (const KernelCall &call : step.kernels.calls)
        arguments = std::max(arguments, call.arguments.size());
    if (arguments > 0)
      argumentArray = LLVM::AllocaOp::create(
          b, pointer, pointer,
          LLVM::ConstantOp::create(b, b.getI64Type(), int64_t(arguments)));
    for (const TaskStep &step : buffers.steps)
      writeStep(step);
    LLVM::ReturnOp::create(b, ValueRange{});
  }

private:
  void writeStep(const TaskStep &step) {
    b.setLoc(step.loc);
    switch (step.kind) {
    case TaskStep::Kind::Check:
      return writeCheck(step);
    case TaskStep::Kind::Kernels:
      for (const KernelCall &call : step.kernels.calls)
        writeKernel(step, call);
      return;
    case TaskStep::Kind::Gemm:
      return writeGemm(step);
    case TaskStep::Kind::GroupedGemm:
      return writeGroupedGemm(step);
    case TaskStep::Kind::Start:
      return writeStart(step);
    case TaskStep::Kind::StartRows:
      return writeStartRows(step);
    case TaskStep::Kind::Wait:
      return writeWait(step);
    case TaskStep::Kind::Copy:
      return writeCopy(step);
    }
  }

  void writeCheck(const TaskStep &step) {
    Type i64 = b.getI64Type();
    declare("rotaCheckIndices", {pointer, pointer, i64, i64, i64});
    SmallVector<Value> arguments{context, address(step.operands[0])};
    for (int64_t number :
         {step.indices.count, step.indices.least, step.indices.bound})
      arguments.push_back(LLVM::ConstantOp::create(b, i64, number));
    LLVM::CallOp::create(b, TypeRange{}, "rotaCheckIndices", arguments);
  }

  void writeKernel(const TaskStep &step, const KernelCall &call) {
    for (auto [i, argument] : llvm::enumerate(call.arguments)) {
      Value place = LLVM::GEPOp::create(b, pointer, pointer, argumentArray,
                                        ArrayRef<LLVM::GEPArg>{int32_t(i)});
      LLVM::StoreOp::create(b, address(step, argument), place);
    }
    Type i64 = b.getI64Type();
    // RotaCpuKernel: (args, begin, end).
    declare(call.symbol, {pointer, i64, i64});
    declare("rotaLaunch", {pointer, pointer, pointer, i64, i64});
    Value kernel = LLVM::AddressOfOp::create(b, pointer, call.symbol);
    LLVM::CallOp::create(
        b, TypeRange{}, "rotaLaunch",
        ValueRange{context, kernel, argumentArray,
                   LLVM::ConstantOp::create(b, i64, call.rows),
                   LLVM::ConstantOp::create(b, i64, call.grain)});
  }

  Value address(const TaskStep &step, const KernelArgument &argument) {
    switch (argument.kind) {
    case KernelArgument::Kind::Operand:
      return address(step.operands[argument.index]);
    case KernelArgument::Kind::Result:
      return address(step.results[argument.index]);
    case KernelArgument::Kind::Temporary:
      return address(step.temporaries[argument.index]);
    case KernelArgument::Kind::Number:
      return LLVM::AddressOfOp::create(
          b, pointer, constantGlobal(int32_t(argument.index)).getSymName());
    case KernelArgument::Kind::Scalar:
      return LLVM::IntToPtrOp::create(b, pointer,
                                      number(int64_t(argument.index)));
    case KernelArgument::Kind::Tiles:
      declare("rotaTiles", {}, pointer);
      return LLVM::CallOp::create(b, pointer, "rotaTiles", ValueRange{})
          .getResult();
    }
    llvm_unreachable("every kind of argument has an address");
  }

  void writeGemm(const TaskStep &step) {
    bool swapped = step.gemm.swapped;
    declare("rotaGemm", {pointer, pointer, pointer, pointer, pointer});
    Value description = LLVM::AddressOfOp::create(
        b, pointer, constantGlobal(step.gemm.gemm).getSymName());
    LLVM::CallOp::create(b, TypeRange{}, "rotaGemm",
                         ValueRange{context, description,
                                    address(step.operands[swapped ? 1 : 0]),
                                    address(step.operands[swapped ? 0 : 1]),
                                    address(step.results[0])});
  }

  void writeGroupedGemm(const TaskStep &step) {
    bool isGradient = step.grouped.isGradient;
    StringRef service = isGradient ? "rotaGroupedGemmGrad" : "rotaGroupedGemm";
    declare(service, SmallVector<Type>(isGradient ? 6 : 7, pointer));
    Value description = LLVM::AddressOfOp::create(
        b, pointer, constantGlobal(step.grouped.gemm).getSymName());
    SmallVector<Value> arguments{context, description};
    for (const BufferAddress &operand : step.operands)
      arguments.push_back(address(operand));
    if (!isGradient && step.operands.size() == 3) // no offset
      arguments.push_back(LLVM::ZeroOp::create(b, pointer));
    arguments.push_back(address(step.results[0]));
    LLVM::CallOp::create(b, TypeRange{}, service, arguments);
  }

  void writeStart(const TaskStep &step) {
    callStart(step, "rotaStartCollective",
              {context, number(step.collective), address(step.operands[0]),
               address(step.results[0])});
  }

  void writeStartRows(const TaskStep &step) {
    SmallVector<Value> arguments{
        context, number(step.collective),
        LLVM::AddressOfOp::create(b, pointer,
                                  constantGlobal(step.exchange).getSymName())};
    for (const BufferAddress &operand : step.operands)
      arguments.push_back(address(operand));
    arguments.push_back(address(step.results[0]));
    callStart(step, "rotaStartRowExchange", arguments);
  }

  Value number(int64_t value) {
    return LLVM::ConstantOp::create(b, b.getI64Type(), value);
  }

  void callStart(const TaskStep &step, StringRef service,
                 ArrayRef<Value> arguments) {
    SmallVector<Type> types(ValueRange(arguments).getTypes());
    declare(service, types, b.getI64Type());
    requests[&step - buffers.steps.data()] =
        LLVM::CallOp::create(b, b.getI64Type(), service, arguments).getResult();
  }

  void writeWait(const TaskStep &step) {
    declare("rotaWaitCollective", {pointer, b.getI64Type()});
    LLVM::CallOp::create(b, TypeRange{}, "rotaWaitCollective",
                         ValueRange{context, requests.at(step.started)});
  }

  void writeCopy(const TaskStep &step) {
    Type i64 = b.getI64Type();
    declare("rotaCopy", {pointer, pointer, pointer, i64});
    LLVM::CallOp::create(
        b, TypeRange{}, "rotaCopy",
        ValueRange{context, address(step.operands[0]), address(step.results[0]),
                   LLVM::ConstantOp::create(b, i64, step.bytes)});
  }

  void declare(StringRef name, ArrayRef<Type> arguments, Type result = {}) {
    if (module.lookupSymbol(name))
      return;
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(module.getBody());
    LLVM::LLVMFuncOp::create(
        b, name,
        LLVM::LLVMFunctionType::get(result ? result : nothing, arguments));
  }

  /// A constant with the bytes of a description or number; equal ones once.
  template <typename T> LLVM::GlobalOp constantGlobal(const T &description) {
    static_assert(std::has_unique_object_representations_v<T>, "no padding");
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(module.getBody());
    StringAttr value = b.getStringAttr(StringRef(
        reinterpret_cast<const char *>(&description), sizeof description));
    unsigned number = 0;
    for (auto global : module.getOps<LLVM::GlobalOp>()) {
      if (global.getValueOrNull() == value)
        return global;
      ++number;
    }
    return LLVM::GlobalOp::create(
        b, LLVM::LLVMArrayType::get(b.getI8Type(), sizeof description),
        /*isConstant=*/true, LLVM::Linkage::Internal,
        ("constant_" + Twine(number)).str(), value, alignof(T));
  }

  Value address(const BufferAddress &location) {
    Value base = blocks.lookup(location.field);
    if (!base) {
      // Loaded where it is first needed; the body is one block.
      Value place =
          LLVM::GEPOp::create(b, pointer, pointer, frame,
                              ArrayRef<LLVM::GEPArg>{int32_t(location.field)});
      base = LLVM::LoadOp::create(b, pointer, place);
      blocks[location.field] = base;
    }
    if (location.offset == 0)
      return base;
    Value offset = LLVM::ConstantOp::create(b, b.getI64Type(), location.offset);
    return LLVM::GEPOp::create(b, pointer, b.getI8Type(), base,
                               ArrayRef<LLVM::GEPArg>{offset});
  }

  ModuleOp module;
  const FunctionBuffers &buffers;
  ImplicitLocOpBuilder b;
  StringRef symbol;
  Type pointer, nothing;
  Value context, frame, argumentArray;
  llvm::DenseMap<int, Value> blocks;   // loaded frame fields
  llvm::DenseMap<int, Value> requests; // by the step that starts
};

} // namespace

TaskWriter::TaskWriter(MLIRContext *context)
    : module(ModuleOp::create(UnknownLoc::get(context))) {
  context->loadDialect<LLVM::LLVMDialect>();
}

void TaskWriter::add(mlir::Location loc, StringRef symbol,
                     const FunctionBuffers &buffers) {
  FunctionWriter(*module, loc, symbol, buffers).write();
}

} // namespace rota::lowering
