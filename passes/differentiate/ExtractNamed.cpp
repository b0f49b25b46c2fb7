// SPDX-License-Identifier: Apache-2.0
//
// Makes a function that returns a named value of the loss.
#include "ir/rota/model/Model.h"
#include "passes/differentiate/Passes.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/IR/IRMapping.h"

namespace mlir::rota {
#define GEN_PASS_DEF_EXTRACTNAMED
#include "passes/differentiate/Passes.h.inc"
} // namespace mlir::rota

using namespace mlir;
using namespace mlir::rota;

namespace {
struct ExtractNamed : mlir::rota::impl::ExtractNamedBase<ExtractNamed> {
  using ExtractNamedBase::ExtractNamedBase;

  void runOnOperation() override;

private:
  FailureOr<NameOp> find(func::FuncOp loss);
  void extract(func::FuncOp loss, NameOp named);
};
} // namespace

/// The one value of that name.
FailureOr<NameOp> ExtractNamed::find(func::FuncOp loss) {
  if (!llvm::hasSingleElement(loss.getBody()))
    return loss.emitOpError("expected one block, got ")
           << loss.getBody().getBlocks().size();
  NameOp found;
  for (auto name : loss.getBody().getOps<NameOp>()) {
    if (name.getName() != valueName)
      continue;
    if (found) {
      auto diagnostic = name.emitOpError("expected one value named '")
                        << valueName << "' in 'loss'";
      diagnostic.attachNote(found.getLoc()) << "the other value";
      return diagnostic;
    }
    found = name;
  }
  if (!found)
    return loss.emitOpError("expected a value named '")
           << valueName << "', got none";
  return found;
}

void ExtractNamed::extract(func::FuncOp loss, NameOp named) {
  SetVector<Operation *> needed;
  BackwardSliceOptions options;
  options.inclusive = true;
  (void)getBackwardSlice(named.getValue(), &needed, options);
  auto isNeeded = [&](Value argument) {
    return named.getValue() == argument ||
           llvm::any_of(needed, [&](Operation *op) {
             return llvm::is_contained(op->getOperands(), argument);
           });
  };
  SmallVector<Value> arguments;
  for (auto [role, argument] :
       llvm::zip_equal(FunctionRoles(loss).arguments(), loss.getArguments()))
    if (role == Role::InputActivation || isNeeded(argument))
      arguments.push_back(argument);

  OpBuilder builder(&getContext());
  builder.setInsertionPointAfter(loss);
  auto function = func::FuncOp::create(
      builder, named.getLoc(), valueName,
      builder.getFunctionType(ValueRange(arguments).getTypes(),
                              named.getType()));
  Block *block = function.addEntryBlock();
  IRMapping mapping;
  mapping.map(arguments, block->getArguments());
  builder.setInsertionPointToEnd(block);
  for (Operation &op : loss.getBody().front())
    if (needed.contains(&op))
      builder.clone(op, mapping);
  func::ReturnOp::create(builder, named.getLoc(),
                         mapping.lookup(named.getValue()));
}

void ExtractNamed::runOnOperation() {
  if (valueName.empty())
    return;
  FailureOr<Model> model = Model::get(getOperation());
  if (failed(model))
    return signalPassFailure();
  FailureOr<NameOp> named = find(model->loss);
  if (failed(named))
    return signalPassFailure();
  if (Operation *other = getOperation().lookupSymbol(valueName)) {
    other->emitOpError("expected the symbol '")
        << valueName << "' to be free for the named value";
    return signalPassFailure();
  }
  extract(model->loss, *named);
}
