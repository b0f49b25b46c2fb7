// SPDX-License-Identifier: Apache-2.0
//
// Fused kernels and their launches.
#include "ir/rota/OpFamily.h"

using namespace mlir;
using namespace mlir::rota;

int64_t RowStrideAttr::of(RankedTensorType type) {
  auto stride = dyn_cast_or_null<RowStrideAttr>(type.getEncoding());
  return stride ? stride.getElements() : type.getShape().back();
}

/// C1: no row reaches into the next one.
LogicalResult RowStrideAttr::verifyEncoding(
    ArrayRef<int64_t> shape, Type,
    llvm::function_ref<InFlightDiagnostic()> emitError) const {
  if (shape.empty())
    return emitError() << "expected no row stride of a tensor without rows";
  if (getElements() < shape.back())
    return emitError() << "expected a row stride of at least " << shape.back()
                       << ", got " << getElements();
  return success();
}

LogicalResult KernelOp::verifyRegions() {
  Block &body = getBody().front();
  // C1: a map per argument with one dimension and one result.
  if (getOperandMaps().size() != body.getNumArguments())
    return emitOpError("expected a map per argument, got ")
           << getOperandMaps().size() << " for " << body.getNumArguments();
  for (AffineMap map : getOperandMaps().getAsValueRange<AffineMapAttr>())
    if (map.getNumDims() != 1 || map.getNumSymbols() != 0 ||
        map.getNumResults() != 1)
      return emitOpError("expected maps from one dimension to one, got ")
             << AffineMapAttr::get(map);
  // C2: a kind per yielded value.
  auto yield = cast<YieldOp>(body.getTerminator());
  if (getResultKinds().size() != yield.getNumOperands())
    return emitOpError("expected a kind per yielded value, got ")
           << getResultKinds().size() << " for " << yield.getNumOperands();
  // C3: tensors of rank 0 or 1.
  auto isRow = [](Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    return tensor && tensor.hasStaticShape() && tensor.getRank() <= 1;
  };
  for (Type type : body.getArgumentTypes())
    if (!isRow(type))
      return emitOpError("expected arguments of rank 0 or 1, got ") << type;
  for (Type type : yield.getOperandTypes())
    if (!isRow(type))
      return emitOpError("expected results of rank 0 or 1, got ") << type;
  // C4: what a body may hold.
  for (Operation &op : body.without_terminator())
    if (!isa<ReduceOp, BroadcastOp>(op) &&
        !isa<arith::ArithDialect, math::MathDialect>(op.getDialect()))
      return op.emitOpError("expected arith, math, 'rota.reduce' or "
                            "'rota.broadcast' in a kernel");
  return success();
}

/// Checks `type` of a launch against the kernel's row type.
static LogicalResult verifyLaunchType(LaunchOp launch, Type type, Type rowType,
                                      bool perRow, int64_t rows) {
  auto tensor = cast<RankedTensorType>(type);
  auto row = cast<RankedTensorType>(rowType);
  // C2: element types agree.
  if (tensor.getElementType() != row.getElementType())
    return launch.emitOpError("expected elements as in the kernel's ")
           << row << ", got " << tensor;
  // C3: sizes agree.
  int64_t columns = row.getNumElements();
  if (perRow && tensor.getNumElements() != rows * columns)
    return launch.emitOpError("expected ")
           << rows << " rows of " << columns << " elements, got " << tensor;
  return success();
}

/// C4: the rows of `types` are equally far apart.
static LogicalResult verifyStrides(LaunchOp launch, ArrayRef<Type> types,
                                   int64_t columns) {
  for (Type type : types) {
    auto tensor = cast<RankedTensorType>(type);
    Attribute stride = tensor.getEncoding();
    if (stride != cast<RankedTensorType>(types[0]).getEncoding())
      return launch.emitOpError("expected rows with one stride, got ")
             << types[0] << " and " << tensor;
    if (stride && tensor.getShape().back() != columns)
      return launch.emitOpError("expected a last dimension of ")
             << columns << " with a row stride, got " << tensor;
  }
  return success();
}

LogicalResult LaunchOp::verifySymbolUses(SymbolTableCollection &symbolTables) {
  // C1: the symbol names a kernel.
  auto module = (*this)->getParentOfType<ModuleOp>();
  auto kernel = symbolTables.lookupSymbolIn<KernelOp>(module, getKernelAttr());
  if (!kernel)
    return emitOpError("expected a 'rota.kernel', '")
           << getKernel() << "' is none";
  Block &body = kernel.getBody().front();
  auto yield = cast<YieldOp>(body.getTerminator());
  if (getInputs().size() != body.getNumArguments() ||
      getNumResults() != yield.getNumOperands())
    return emitOpError("expected ")
           << body.getNumArguments() << " operands and "
           << yield.getNumOperands() << " results as the kernel, got "
           << getInputs().size() << " and " << getNumResults();
  int64_t rows = getRows();
  if (rows < 1)
    return emitOpError("expected at least 1 row, got ") << rows;
  SmallVector<Type> ofRows; // with columns of each row
  int64_t columns = 0;
  auto addRows = [&](Type type, Type rowType) {
    auto row = cast<RankedTensorType>(rowType);
    if (row.getRank() == 0)
      return;
    ofRows.push_back(type);
    columns = row.getNumElements();
  };
  auto maps = kernel.getOperandMaps().getAsValueRange<AffineMapAttr>();
  for (auto [input, row, map] :
       llvm::zip(getInputs(), body.getArguments(), maps)) {
    if (failed(verifyLaunchType(*this, input.getType(), row.getType(),
                                map.isIdentity(), rows)))
      return failure();
    if (map.isIdentity())
      addRows(input.getType(), row.getType());
  }
  for (auto [result, row, kind] :
       llvm::zip(getResults(), yield.getValues(), kernel.getResultKinds())) {
    bool perRow = cast<ResultKindAttr>(kind).getValue() == ResultKind::Row;
    if (failed(verifyLaunchType(*this, result.getType(), row.getType(), true,
                                perRow ? rows : 1)))
      return failure();
    if (perRow)
      addRows(result.getType(), row.getType());
  }
  return verifyStrides(*this, ofRows, columns);
}

KernelOp LaunchOp::getKernelOp() {
  return (*this)->getParentOfType<ModuleOp>().lookupSymbol<KernelOp>(
      getKernelAttr().getAttr());
}

/// The operations of the body, on all rows.
Cost LaunchOp::getCost() {
  Cost row;
  if (KernelOp kernel = getKernelOp())
    for (Operation &op : kernel.getBody().front())
      if (auto priced = dyn_cast<CostOpInterface>(op))
        row += priced.getCost();
  auto rows = double(getRows());
  Cost cost =
      streamingCost(*this, rows * row.flops, rows * row.specialFunctions);
  cost.roundings = rows * row.roundings;
  return cost;
}

bool LaunchOp::canAccumulate(unsigned) { return true; }

/// A row of a result may overwrite the same row of an operand of its type that
/// no other row reads.
InPlacePairs LaunchOp::getInPlacePairs() {
  KernelOp kernel = getKernelOp();
  if (!kernel)
    return {};
  SmallVector<AffineMap> maps(
      kernel.getOperandMaps().getAsValueRange<AffineMapAttr>());
  auto isReadElsewhere = [&](Value input) {
    return llvm::any_of(llvm::zip(getInputs(), maps), [&](auto pair) {
      return std::get<0>(pair) == input && !std::get<1>(pair).isIdentity();
    });
  };
  auto isRow = [&](unsigned result) {
    return cast<ResultKindAttr>(kernel.getResultKinds()[result]).getValue() ==
           ResultKind::Row;
  };
  Block &body = kernel.getBody().front();
  InPlacePairs pairs;
  for (auto [i, input] : llvm::enumerate(getInputs()))
    for (auto [j, value] : llvm::enumerate(body.getTerminator()->getOperands()))
      if (isRow(j) && !isReadElsewhere(input) &&
          body.getArgument(i).getType() == value.getType())
        pairs.push_back({i, j});
  return pairs;
}
