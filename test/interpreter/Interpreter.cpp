// SPDX-License-Identifier: Apache-2.0
//
// The interpreter's loop: a block's ops in order, each through the table.
#include "test/interpreter/Interpreter.h"

using namespace rota::interpreter;
using llvm::failure;
using llvm::FailureOr;
using llvm::success;

llvm::ArrayRef<int64_t> rota::interpreter::shapeOf(mlir::Value value) {
  return llvm::cast<mlir::RankedTensorType>(value.getType()).getShape();
}

const Tensor &Frame::get(mlir::Value value) const {
  auto it = values.find(value);
  assert(it != values.end() && "a value is set before it is used");
  return it->second;
}

void Frame::set(mlir::Value value, Tensor tensor) {
  auto type = llvm::cast<mlir::RankedTensorType>(value.getType());
  assert(type.getShape() == llvm::ArrayRef<int64_t>(tensor.shape) &&
         "a value has its type's shape");
  if (options.roundBF16 && type.getElementType().isBF16())
    for (double &element : tensor.elements)
      element = roundToBF16(element);
  values[value] = std::move(tensor);
}

const OpTable &OpTable::get() {
  static const OpTable table = [] {
    OpTable table;
    addElementwiseOps(table);
    addTensorOps(table);
    addNormalizationOps(table);
    addAttentionOps(table);
    addModelOps(table);
    addVocabularyOps(table);
    addExpertOps(table);
    return table;
  }();
  return table;
}

const OpTable::Function *OpTable::lookup(mlir::Operation *op) const {
  auto it = functions.find(op->getName().getStringRef());
  return it == functions.end() ? nullptr : &it->second;
}

/// Checks the types of an op's operands and results.
static llvm::LogicalResult verifyStatic(mlir::Operation *op) {
  auto isStatic = [](mlir::Type type) {
    auto tensor = llvm::dyn_cast<mlir::RankedTensorType>(type);
    return tensor && tensor.hasStaticShape();
  };
  for (mlir::Type type : op->getOperandTypes())
    if (!isStatic(type))
      return op->emitOpError("the interpreter runs static tensors, got ")
             << type;
  for (mlir::Type type : op->getResultTypes())
    if (!isStatic(type))
      return op->emitOpError("the interpreter runs static tensors, got ")
             << type;
  return success();
}

llvm::LogicalResult rota::interpreter::runOp(mlir::Operation *op,
                                             Frame &frame) {
  const OpTable::Function *function = OpTable::get().lookup(op);
  if (!function)
    return op->emitOpError("is not known to the interpreter");
  return failed(verifyStatic(op)) ? failure() : (*function)(op, frame);
}

FailureOr<llvm::SmallVector<Tensor>>
rota::interpreter::runBlock(mlir::Block &block,
                            llvm::ArrayRef<Tensor> arguments,
                            Environment &environment, const Options &options) {
  Frame frame(options, environment);
  for (auto [argument, tensor] :
       llvm::zip_equal(block.getArguments(), arguments))
    frame.set(argument, tensor);
  for (mlir::Operation &op : block.without_terminator())
    if (failed(runOp(&op, frame)))
      return failure();
  llvm::SmallVector<Tensor> results;
  for (mlir::Value value : block.getTerminator()->getOperands())
    results.push_back(frame.get(value));
  return results;
}

llvm::LogicalResult
rota::interpreter::verifyCall(mlir::func::FuncOp function,
                              llvm::ArrayRef<Tensor> arguments) {
  if (function.isExternal() || !function.getBody().hasOneBlock())
    return function.emitOpError("expected a body of one block");
  if (function.getNumArguments() != arguments.size())
    return function.emitOpError("expected ")
           << function.getNumArguments() << " arguments, got "
           << arguments.size();
  for (auto [index, argument] : llvm::enumerate(function.getArguments())) {
    auto type = llvm::dyn_cast<mlir::RankedTensorType>(argument.getType());
    if (!type || !type.hasStaticShape() ||
        type.getShape() != llvm::ArrayRef<int64_t>(arguments[index].shape)) {
      auto diagnostic = function.emitOpError("expected argument ")
                        << index << " of type " << argument.getType()
                        << ", got a tensor of shape [";
      llvm::interleaveComma(arguments[index].shape, diagnostic);
      return diagnostic << "]";
    }
  }
  return success();
}

FailureOr<llvm::SmallVector<Tensor>> rota::interpreter::runFunction(
    mlir::func::FuncOp function, llvm::ArrayRef<Tensor> arguments,
    Environment &environment, const Options &options) {
  if (failed(verifyCall(function, arguments)))
    return failure();
  return runBlock(function.getBody().front(), arguments, environment, options);
}

FailureOr<llvm::SmallVector<Tensor>>
rota::interpreter::runFunction(mlir::func::FuncOp function,
                               llvm::ArrayRef<Tensor> arguments,
                               const Options &options) {
  Environment environment;
  return runFunction(function, arguments, environment, options);
}
