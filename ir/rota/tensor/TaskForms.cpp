// SPDX-License-Identifier: Apache-2.0
//
// Answers to TaskOpInterface: the ops that become no kernels, those that can
// add to what their results' buffers hold, and those that can work in place.
#include "ir/rota/experts/Experts.h"

using namespace mlir;
using namespace mlir::rota;

using Pairs = SmallVector<std::pair<unsigned, unsigned>>;

TaskForm ReshapeOp::getTaskForm() { return TaskForm::View; }

TaskForm ReadOp::getTaskForm() { return TaskForm::Address; }
TaskForm AccumulateOp::getTaskForm() { return TaskForm::Address; }
TaskForm AuxiliaryLossOp::getTaskForm() { return TaskForm::Address; }
TaskForm AuxiliaryCotangentOp::getTaskForm() { return TaskForm::Address; }
TaskForm ObserveOp::getTaskForm() { return TaskForm::Address; }
TaskForm ObservedMeanOp::getTaskForm() { return TaskForm::Address; }
TaskForm RotaryTableOp::getTaskForm() { return TaskForm::Address; }
TaskForm ShardOffsetOp::getTaskForm() { return TaskForm::Address; }

TaskForm EinsumOp::getTaskForm() { return TaskForm::Product; }
bool EinsumOp::canAccumulate(unsigned) { return true; }

TaskForm GroupedProductOp::getTaskForm() { return TaskForm::Product; }
bool GroupedProductOp::canAccumulate(unsigned) { return true; }
TaskForm GroupedProductGradOp::getTaskForm() { return TaskForm::Product; }
bool GroupedProductGradOp::canAccumulate(unsigned) { return true; }

TaskForm RaggedAllToAllOp::getTaskForm() { return TaskForm::Collective; }

bool GroupedBiasGradOp::canAccumulate(unsigned) { return true; }

/// A row is read before it is written.
Pairs GroupedBiasOp::getInPlacePairs() { return {{0, 0}}; }

bool EmbeddingGradOp::canAccumulate(unsigned) { return true; }

/// A position's pairs are read before they are written.
Pairs RopeOp::getInPlacePairs() { return {{0, 0}}; }

/// A row's target is read before the row is written.
Pairs CrossEntropyGradOp::getInPlacePairs() { return {{1, 0}}; }

Pairs AllReduceOp::getInPlacePairs() { return {{0, 0}}; }

KernelOp LaunchOp::getKernelOp() {
  return (*this)->getParentOfType<ModuleOp>().lookupSymbol<KernelOp>(
      getKernelAttr().getAttr());
}

bool LaunchOp::canAccumulate(unsigned) { return true; }

/// A row of a result may overwrite the same row of an operand of its type that
/// no other row reads.
Pairs LaunchOp::getInPlacePairs() {
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
  Pairs pairs;
  for (auto [i, input] : llvm::enumerate(getInputs()))
    for (auto [j, value] : llvm::enumerate(body.getTerminator()->getOperands()))
      if (isRow(j) && !isReadElsewhere(input) &&
          body.getArgument(i).getType() == value.getType())
        pairs.push_back({i, j});
  return pairs;
}
