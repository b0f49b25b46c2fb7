// SPDX-License-Identifier: Apache-2.0
//
// Checks of a kernel's body, and the levels of its values.
#include "lowering/kernels/rows/RowBody.h"

#include <limits>

using namespace mlir;
using mlir::rota::ReduceKind;
using mlir::rota::ReduceOp;
using mlir::rota::ResultKind;
using mlir::rota::ResultKindAttr;

namespace rota::lowering {

static RankedTensorType tensorOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}

int64_t RowBody::rankOf(Value value) { return tensorOf(value).getRank(); }

Type RowBody::elementOf(Value value) {
  return tensorOf(value).getElementType();
}

ArrayRef<BlockArgument> RowBody::getOperands() const {
  return kernel.getBody().front().getArguments();
}

AffineMap RowBody::getMap(unsigned number) const {
  return cast<AffineMapAttr>(kernel.getOperandMaps()[number]).getValue();
}

ValueRange RowBody::getResults() const {
  return kernel.getBody().front().getTerminator()->getOperands();
}

bool RowBody::isSum(unsigned result) const {
  return cast<ResultKindAttr>(kernel.getResultKinds()[result]).getValue() ==
         ResultKind::Sum;
}

SmallVector<ReduceOp> RowBody::getReductions(int pass) const {
  SmallVector<ReduceOp> reductions;
  for (auto reduce : kernel.getBody().getOps<ReduceOp>())
    if (rankOf(reduce.getInput()) == 1 &&
        levels.lookup(reduce.getInput()) == pass)
      reductions.push_back(reduce);
  return reductions;
}

SmallVector<Value> RowBody::getColumnRoots(int pass) const {
  SmallVector<Value> roots;
  for (ReduceOp reduce : getReductions(pass))
    roots.push_back(reduce.getInput());
  if (pass == passes - 1)
    llvm::copy_if(getResults(), std::back_inserter(roots),
                  [](Value value) { return rankOf(value) == 1; });
  return roots;
}

FailureOr<RowBody> RowBody::get(mlir::rota::KernelOp kernel) {
  RowBody body(kernel);
  if (failed(body.check()))
    return failure();
  body.computeLevels();
  return body;
}

FailureOr<RowBody> RowBody::get(mlir::rota::LaunchOp launch) {
  auto body = get(launch.getKernelOp());
  if (failed(body))
    return failure();
  auto take = [&](Type type) {
    auto tensor = cast<RankedTensorType>(type);
    if (tensor.getEncoding())
      body->stride = mlir::rota::RowStrideAttr::of(tensor);
  };
  llvm::for_each(launch->getOperandTypes(), take);
  llvm::for_each(launch->getResultTypes(), take);
  return body;
}

LogicalResult RowBody::check() {
  auto checkValue = [&](Value value, Operation *at,
                        bool boundary) -> LogicalResult {
    Type element = elementOf(value);
    if (!element.isF32() && !element.isBF16() && !element.isInteger(32) &&
        (boundary || !element.isInteger(1)))
      return at->emitOpError("expected a kernel of f32, bf16 and i32 values, "
                             "got ")
             << value.getType();
    if (rankOf(value) == 0)
      return success();
    int64_t size = tensorOf(value).getNumElements();
    if (columns != 0 && size != columns)
      return at->emitOpError("expected rows of one length, got ")
             << columns << " and " << size;
    columns = size;
    return success();
  };
  for (BlockArgument argument : getOperands())
    if (failed(checkValue(argument, kernel, true)))
      return failure();
  for (Operation &op : kernel.getBody().front().without_terminator()) {
    for (Value result : op.getResults())
      if (failed(checkValue(result, &op, false)))
        return failure();
    if (auto constant = dyn_cast<arith::ConstantOp>(op);
        constant && !isa<SplatElementsAttr>(constant.getValue()))
      return op.emitOpError("expected a constant with one value for all "
                            "elements, got ")
             << constant.getValue();
  }
  for (Value value : getResults())
    if (failed(checkValue(value, kernel, true)))
      return failure();
  return success();
}

void RowBody::computeLevels() {
  for (Operation &op : kernel.getBody().front().without_terminator()) {
    int level = 0;
    for (Value operand : op.getOperands())
      level = std::max(level, levels.lookup(operand));
    if (isa<ReduceOp>(op) && rankOf(op.getOperand(0)) == 1)
      passes = std::max(passes, ++level);
    for (Value result : op.getResults())
      levels[result] = level;
  }
  for (Value value : getResults())
    if (rankOf(value) == 1)
      passes = std::max(passes, levels.lookup(value) + 1);
}

float neutralOf(ReduceOp reduce) {
  return reduce.getKind() == ReduceKind::Sum
             ? 0.0f
             : -std::numeric_limits<float>::infinity();
}

} // namespace rota::lowering
