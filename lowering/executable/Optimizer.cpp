// SPDX-License-Identifier: Apache-2.0
//
// Describes the optimizer's kernels as fused groups, in a module of their own,
// and plans them like any other launch.
#include "lowering/executable/Optimizer.h"

#include "mlir/IR/Verifier.h"

using namespace mlir;
using namespace mlir::rota;

namespace rota::lowering {
namespace {

/// One kernel over rows, and its launch on a single row.
class KernelBuilder {
public:
  KernelBuilder(mlir::Location loc, StringRef name, size_t results)
      : loc(loc), b(loc->getContext()), module(ModuleOp::create(loc)) {
    b.setInsertionPointToStart(module->getBody());
    SmallVector<Attribute> kinds(
        results, ResultKindAttr::get(b.getContext(), ResultKind::Row));
    kernel = KernelOp::create(b, loc, name, b.getAffineMapArrayAttr({}),
                              b.getArrayAttr(kinds));
    if (kernel.getBody().empty())
      kernel.getBody().emplaceBlock();
    block = &kernel.getBody().front();
    block->clear();
  }

  OpBuilder body() { return OpBuilder::atBlockEnd(block); }

  /// An operand of the row's own, or one value that all rows share.
  Value addOperand(Type type, bool shared) {
    AffineExpr row =
        shared ? b.getAffineConstantExpr(0) : b.getAffineDimExpr(0);
    maps.push_back(AffineMap::get(1, 0, row));
    return block->addArgument(type, loc);
  }

  /// Ends the body with these results; the symbol of the native kernel, whose
  /// arguments are the operands, then the results.
  FailureOr<std::string> finish(ValueRange results, KernelLibrary &library) {
    OpBuilder inner = body();
    YieldOp::create(inner, loc, results);
    kernel.setOperandMapsAttr(b.getAffineMapArrayAttr(maps));
    // The launch's operands need a function to come from.
    auto function = func::FuncOp::create(
        b, loc, "launch",
        b.getFunctionType(block->getArgumentTypes(), results.getTypes()));
    Block *entry = function.addEntryBlock();
    b.setInsertionPointToStart(entry);
    auto launch =
        LaunchOp::create(b, loc, results.getTypes(), kernel.getSymName(),
                         /*rows=*/1, entry->getArguments());
    func::ReturnOp::create(b, loc, launch.getResults());
    if (failed(mlir::verify(*module)))
      return failure();
    auto plan =
        planKernels(launch, SmallVector<bool>(results.size(), false), library);
    if (failed(plan))
      return failure();
    return plan->calls.front().symbol;
  }

private:
  mlir::Location loc;
  OpBuilder b;
  OwningOpRef<ModuleOp> module;
  KernelOp kernel;
  Block *block = nullptr;
  SmallVector<AffineMap> maps;
};

FailureOr<std::string> emitUpdate(mlir::Location loc, int64_t columns,
                                  ElementType compute, KernelLibrary &library) {
  OpBuilder types(loc->getContext());
  auto row = RankedTensorType::get({columns}, types.getF32Type());
  auto scalar = RankedTensorType::get({}, types.getF32Type());
  SmallVector<Type> results(4, row);
  if (compute == ElementType::BF16)
    results.push_back(RankedTensorType::get({columns}, types.getBF16Type()));
  KernelBuilder builder(loc, "update", results.size());
  SmallVector<Value> tensors, scalars;
  for (int i = 0; i < 4; ++i) // parameter, gradient, moments
    tensors.push_back(builder.addOperand(row, /*shared=*/false));
  for (int i = 0; i < 8; ++i)
    scalars.push_back(builder.addOperand(scalar, /*shared=*/true));
  OpBuilder body = builder.body();
  auto step = AdamWOp::create(body, loc, results, tensors[0], tensors[1],
                              tensors[2], tensors[3], scalars);
  body.setInsertionPoint(step);
  auto made = step.decompose(body);
  if (failed(made))
    return failure();
  step.erase();
  return builder.finish(*made, library);
}

FailureOr<std::string> emitSquare(mlir::Location loc, int64_t columns,
                                  KernelLibrary &library) {
  OpBuilder types(loc->getContext());
  auto row = RankedTensorType::get({columns}, types.getF32Type());
  auto scalar = RankedTensorType::get({}, types.getF32Type());
  KernelBuilder builder(loc, "square", 1);
  Value gradient = builder.addOperand(row, /*shared=*/false);
  OpBuilder body = builder.body();
  Value square = arith::MulFOp::create(body, loc, gradient, gradient);
  Value sum = ReduceOp::create(body, loc, scalar, ReduceKind::Sum, square,
                               ArrayRef<int64_t>{0});
  return builder.finish(sum, library);
}

} // namespace

LogicalResult addOptimizer(mlir::Location loc, Program &program,
                           KernelLibrary &library) {
  std::vector<std::pair<std::string, std::string>> symbols;
  for (const Parameter &parameter : program.parameters) {
    int64_t columns = partElements(parameter.shape, parameter.optimizerDivision,
                                   program.mesh) /
                      parameter.rows;
    auto update = emitUpdate(loc, columns, parameter.compute, library);
    auto square = emitSquare(loc, columns, library);
    if (failed(update) || failed(square))
      return failure();
    symbols.emplace_back(*update, *square);
  }
  program.kernels = kernelNames(library);
  for (const std::string &kernel : program.kernels)
    program.kernelRowBytes.push_back(library.getRowBytes(kernel));
  auto number = [&](const std::string &symbol) {
    return int(llvm::find(program.kernels, symbol) - program.kernels.begin());
  };
  for (auto [parameter, names] : llvm::zip_equal(program.parameters, symbols)) {
    parameter.updateKernel = number(names.first);
    parameter.squareKernel = number(names.second);
  }
  return success();
}

} // namespace rota::lowering
