// SPDX-License-Identifier: Apache-2.0
//
// Ops of a model's structure: parameters, names, shardings of whole values, and
// launches of kernels.
#include "test/interpreter/Interpreter.h"

using namespace ::rota::interpreter;
using namespace mlir;
using namespace mlir::rota;

static LogicalResult read(ReadOp op, Frame &frame) {
  const auto &parameters = frame.getEnvironment().parameters;
  auto it = parameters.find(op.getParam().str());
  if (it == parameters.end())
    return op.emitOpError("expected a value for parameter '")
           << op.getParam() << "' in the environment";
  if (shapeOf(op.getResult()) != ArrayRef<int64_t>(it->second->shape)) {
    auto diagnostic = op.emitOpError("expected ")
                      << op.getType() << " as parameter '" << op.getParam()
                      << "', got a tensor of shape [";
    llvm::interleaveComma(it->second->shape, diagnostic);
    return diagnostic << "]";
  }
  frame.set(op.getResult(), *it->second);
  return success();
}

static LogicalResult accumulate(AccumulateOp op, Frame &frame) {
  auto &gradients = frame.getEnvironment().gradients;
  auto it = gradients.find(op.getParam().str());
  if (it == gradients.end())
    return op.emitOpError("expected a gradient of parameter '")
           << op.getParam() << "' in the environment";
  *it->second += frame.get(op.getValue());
  return success();
}

static LogicalResult auxiliaryLoss(AuxiliaryLossOp op, Frame &frame) {
  auto *sums = frame.getEnvironment().auxiliarySums;
  if (!sums)
    return op.emitOpError("expected sums of auxiliary losses in the "
                          "environment");
  (*sums)[op.getName().str()] += frame.get(op.getSum())[0];
  return success();
}

static LogicalResult auxiliaryCotangent(AuxiliaryCotangentOp op, Frame &frame) {
  const auto *cotangents = frame.getEnvironment().auxiliaryCotangents;
  auto it = cotangents ? cotangents->find(op.getName().str())
                       : std::map<std::string, double>::const_iterator();
  if (!cotangents || it == cotangents->end())
    return op.emitOpError("expected a cotangent of '")
           << op.getName() << "' in the environment";
  frame.set(op.getResult(), Tensor::scalar(it->second));
  return success();
}

static void name(NameOp op, Frame &frame) {
  if (Tensors *named = frame.getEnvironment().named)
    (*named)[op.getName().str()] = frame.get(op.getValue());
  frame.set(op.getResult(), frame.get(op.getValue()));
}

/// Shardings do not change a value that is whole.
static void constrain(ConstrainOp op, Frame &frame) {
  frame.set(op.getResult(), frame.get(op.getValue()));
}

static void reshard(ReshardOp op, Frame &frame) {
  frame.set(op.getResult(), frame.get(op.getValue()));
}

/// Row `row` of a tensor seen as rows of `shape`, which is [columns] or scalar.
static Tensor rowOf(const Tensor &tensor, int64_t row,
                    ArrayRef<int64_t> shape) {
  Tensor result(shape);
  std::copy_n(tensor.elements.begin() + row * result.size(), result.size(),
              result.elements.begin());
  return result;
}

/// Runs the kernel's body once a row, rows ascending; results of kind `sum` are
/// summed in that order.
static LogicalResult launch(LaunchOp op, Frame &frame) {
  auto module = op->getParentOfType<ModuleOp>();
  auto kernel = module.lookupSymbol<KernelOp>(op.getKernel());
  if (!kernel)
    return op.emitOpError("expected a kernel '") << op.getKernel() << "'";
  Block &body = kernel.getBody().front();
  SmallVector<Tensor> results;
  for (Value result : op.getResults())
    results.emplace_back(shapeOf(result));
  auto maps = kernel.getOperandMaps().getAsValueRange<AffineMapAttr>();
  for (int64_t row = 0; row < int64_t(op.getRows()); ++row) {
    SmallVector<Tensor> arguments;
    for (auto [input, argument, map] :
         llvm::zip_equal(op.getInputs(), body.getArguments(), maps))
      arguments.push_back(rowOf(frame.get(input),
                                map.compose(ArrayRef<int64_t>{row}).front(),
                                shapeOf(argument)));
    auto rows =
        runBlock(body, arguments, frame.getEnvironment(), frame.getOptions());
    if (failed(rows))
      return failure();
    for (auto [result, value, kind] :
         llvm::zip_equal(results, *rows, kernel.getResultKinds())) {
      bool isSum = cast<ResultKindAttr>(kind).getValue() == ResultKind::Sum;
      int64_t base = isSum ? 0 : row * value.size();
      for (int64_t i = 0; i < value.size(); ++i)
        result[base + i] = (isSum ? result[base + i] : 0) + value[i];
    }
  }
  for (auto [value, result] : llvm::zip_equal(op.getResults(), results))
    frame.set(value, std::move(result));
  return success();
}

void ::rota::interpreter::addModelOps(OpTable &table) {
  table.add(read);
  table.add(accumulate);
  table.add(auxiliaryLoss);
  table.add(auxiliaryCotangent);
  table.add(name);
  table.add(constrain);
  table.add(reshard);
  table.add(launch);
}
