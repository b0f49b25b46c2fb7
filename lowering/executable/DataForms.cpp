// SPDX-License-Identifier: Apache-2.0
//
// Follows tokens and targets to what they index.
#include "lowering/executable/DataForms.h"
#include "lowering/executable/Collectives.h"
#include "lowering/executable/ConstantTables.h"
#include "lowering/memory/Layout.h"

#include <limits>

using namespace mlir;
using namespace mlir::rota;

namespace rota::lowering {

/// The form of a value whose type is that of one rank's part.
static DataForm formOf(const FunctionPort &port, const ProgramMesh &mesh) {
  DataForm form;
  form.type = elementTypeOf(port.type());
  form.shape = cast<RankedTensorType>(port.type()).getShape().vec();
  ShardingAttr sharding = port.sharding();
  if (!sharding)
    return form;
  form.division = mesh.divisionOf(sharding);
  for (auto [size, axes] : llvm::zip_equal(form.shape, form.division))
    size *= groupSize(mesh.axes(), axes);
  return form;
}

/// The least bound of what the numbers index; 0 where they are no integers.
static int64_t boundOf(FunctionPort argument) {
  Value numbers = argument.function.getArgument(argument.index);
  if (!getElementTypeOrSelf(numbers).isInteger())
    return 0;
  int64_t bound = int64_t(std::numeric_limits<int32_t>::max()) + 1;
  SmallVector<Value> pending{numbers};
  while (!pending.empty()) {
    Value value = pending.pop_back_val();
    for (Operation *user : value.getUsers()) {
      if (auto indexed = dyn_cast<IndexOpInterface>(user);
          indexed && indexed.getIndices() == value)
        bound = std::min(bound, indexed.getIndexBound().value_or(bound));
      if (isa<ViewOpInterface, CollectiveOpInterface>(user))
        pending.push_back(user->getResult(0));
    }
  }
  return bound;
}

/// Targets are tokens where inputs are, and of their shape.
static LogicalResult checkTargets(const FunctionPort &targets,
                                  const Program &program) {
  bool areTokens = program.vocabulary > 0;
  func::FuncOp loss = targets.function;
  if (areTokens != (program.classes > 0))
    return loss.emitOpError("expected targets of ")
           << (areTokens ? "integers, as the inputs are tokens"
                         : "numbers, as the inputs are no tokens")
           << ", got " << targets.type();
  if (areTokens && program.input.shape != program.target.shape)
    return loss.emitOpError("expected a target for each input token, got ")
           << targets.type();
  return success();
}

/// Writes how often the loss is called in a microbatch. The target is then that
/// of all calls. Kernels expect aligned places of activations.
static LogicalResult describeCalls(const Model &model, Program &program) {
  func::FuncOp loss = model.loss;
  program.lossCalls = model.lossCalls();
  if (program.lossCalls == 1)
    return success();
  if (program.target.shape.size() < 2)
    return loss.emitOpError("expected targets [batch, sequence, ...] of a loss "
                            "that takes a part of the sequence, got ")
           << FunctionRoles(loss).argument(Role::Targets).type();
  program.target.shape[1] *= program.lossCalls;
  int64_t bytes = tensorBytes(model.activationType(ModelPart::Loss));
  if (bytes % memory::kAlignment != 0)
    return loss.emitOpError(
               "expected a call of the loss to take a multiple of ")
           << memory::kAlignment << " bytes of the activation, got " << bytes;
  return success();
}

/// Reads the form of positions in documents: a rank has those of its sequences.
static LogicalResult describeDocuments(const Model &model, Program &program) {
  DocumentPositionsOp first;
  WalkResult result =
      model.module->walk([&](DocumentPositionsOp op) -> WalkResult {
        if (!first)
          first = op;
        if (op.getEnd() != first.getEnd() || op.getType() != first.getType())
          return op.emitOpError("expected the end token and the type of all "
                                "others, ")
                 << first.getEnd() << " and " << first.getType() << ", got "
                 << op.getEnd() << " and " << op.getType();
        return success();
      });
  if (result.wasInterrupted())
    return failure();
  if (!first)
    return success();
  auto type = cast<RankedTensorType>(first.getType());
  DataForm form = program.input;
  if (form.division.size() > 1)
    form.division[1].clear();
  if (program.vocabulary == 0 ||
      ArrayRef(partShape(form.shape, form.division, program.mesh)) !=
          type.getShape())
    return first.emitOpError("expected a position for each input token, got ")
           << type;
  program.positions = std::move(form);
  program.documentEnd = int64_t(first.getEnd());
  return success();
}

LogicalResult describeData(const Model &model, const ProgramMesh &mesh,
                           Program &program) {
  FunctionRoles loss(model.loss);
  FunctionPort tokens = FunctionRoles(model.embed).argument(Role::Tokens);
  FunctionPort targets = loss.argument(Role::Targets);
  program.input = formOf(tokens, mesh);
  program.target = formOf(targets, mesh);
  if (failed(describeCalls(model, program)))
    return failure();
  program.vocabulary = boundOf(tokens);
  program.classes = boundOf(targets);
  if (ShardingAttr sum = loss.result(Role::LossSum).sharding())
    program.lossAxes = mesh.axesOf(sum.getUnreduced());
  for (const FunctionPort &term : loss.results(Role::LossTerm))
    program.lossTerms.push_back(
        {term.lossTerm().getName().str(),
         term.lossTerm().getCoefficient().convertToDouble()});
  if (func::FuncOp logits = model.function("logits")) {
    if (program.lossCalls > 1 && !program.samples)
      return logits.emitOpError("expected a loss of the whole sequence where "
                                "logits are written, got one of a part in ")
             << program.lossCalls;
    DataForm &form = program.logits;
    form = formOf(FunctionRoles(logits).result(Role::NamedValue), mesh);
    // Parts of logits may end in padding.
    if (program.classes > 0 && !form.division.empty() &&
        !form.division.back().empty())
      form.shape.back() = std::min(form.shape.back(), program.classes);
  }
  return failed(describeDocuments(model, program))
             ? failure()
             : checkTargets(targets, program);
}

} // namespace rota::lowering
