// SPDX-License-Identifier: Apache-2.0
//
// Gives each argument and result of the model's functions its address in the
// frame, by role, and lowers the functions.
#include "lowering/executable/Tasks.h"
#include "ir/rota/experts/Experts.h"
#include "lowering/executable/DataForms.h"
#include "lowering/executable/Parameters.h"
#include "lowering/executable/TaskCode.h"
#include "lowering/executable/Updates.h"

using namespace mlir;
using namespace mlir::rota;

namespace rota::lowering {
namespace {

using memory::FrameField;

/// Places of the arguments or of the results of one function in the frame.
class RoleAddresses {
public:
  /// The address of `port`; nothing when the frame has none for its role.
  /// Several values of one role are asked for in their order.
  std::optional<BufferAddress> add(const FunctionPort &port, Role role) {
    int64_t bytes = tensorBytes(port.type());
    switch (role) {
    case Role::Tokens:
    case Role::Targets:
      return at(memory::Data);
    case Role::InputActivation:
      return at(memory::Input);
    case Role::OutputActivation:
    case Role::NamedValue:
      return at(memory::Output);
    case Role::InputCotangent:
      return at(memory::InputCotangent);
    case Role::OutputCotangent:
      return at(memory::OutputCotangent);
    case Role::Residual:
      return port.isOffloaded() ? at(memory::Offloaded, offloaded.add(bytes))
                                : at(memory::Residuals, residuals.add(bytes));
    case Role::CotangentResidual:
      return at(memory::Cotangents, cotangents.add(bytes));
    case Role::LossSum:
      return at(memory::Loss, 0);
    case Role::LossWeight:
      return at(memory::Loss, 4);
    case Role::LossTerm:
      return at(memory::Loss, 8 + 4 * terms++);
    case Role::Unknown:
      return std::nullopt;
    }
    llvm_unreachable("a role");
  }

  /// Sizes of the blocks that hold several values.
  int64_t residualBytes() const { return residuals.bytes(); }
  int64_t offloadedBytes() const { return offloaded.bytes(); }
  int64_t cotangentBytes() const { return cotangents.bytes(); }

private:
  static BufferAddress at(memory::FrameField field, int64_t offset = 0) {
    return {field, offset};
  }

  memory::Packer residuals, offloaded, cotangents;
  int64_t terms = 0;
};

/// The kernels of all tasks, with the bytes of their rows.
void describeKernels(const KernelLibrary &library, Program &program) {
  program.kernels = library.getSymbols();
  for (const std::string &symbol : program.kernels)
    program.kernelRowBytes.push_back(library.getRowBytes(symbol));
}

class Lowering {
public:
  Lowering(const Model &model, std::vector<AuxiliaryLoss> losses,
           const ProgramMesh &mesh, KernelLibrary &library)
      : model(model), mesh(mesh), library(library),
        writer(model.module->getContext()), tables(std::move(losses)),
        collectives(mesh, layout.program.collectives) {}

  FailureOr<LoweredModel> run(bool samples) {
    layout.program.mesh = mesh.axes();
    layout.program.samples = samples;
    layout.kinds.resize(model.kinds().size());
    auto addresses = layOutParameters(model, collectives, layout);
    if (failed(addresses))
      return failure();
    layout.activationBytes = tensorBytes(model.activationType());
    layout.program.parameterCount = model.parameterCount();
    if (failed(describeData(model, mesh, layout.program)))
      return failure();
    size_t number = 0;
    for (LayerOp kind : model.kinds()) {
      if (failed(lowerKind(kind, (*addresses)[number], layout.kinds[number])))
        return failure();
      ++number;
    }
    if (failed(lowerPart(model.module, ModelPart::Embed, (*addresses)[number],
                         layout.embed)) ||
        failed(lowerLoss((*addresses)[number + 1])) ||
        failed(lowerUpdates(
            model, layout.program,
            [&](func::FuncOp function, const FunctionAddresses &addresses) {
              library.setTables(true);
              auto task =
                  addTask(function, function.getSymName().str(), addresses);
              library.setTables(false);
              return task;
            })))
      return failure();
    describeKernels(library, layout.program);
    layout.tables = tables.tables();
    layout.shardOffsets = tables.shardOffsets();
    layout.program.constantTensors = tables.constantTensors();
    layout.program.auxiliaryLosses = tables.auxiliaryLosses();
    layout.auxiliaryCotangents = tables.auxiliaryCotangents();
    layout.constantBytes = tables.bytes();
    return LoweredModel{std::move(layout), writer.take(), std::move(launches)};
  }

private:
  LogicalResult addPlaces(func::FuncOp function, bool isResult,
                          ArrayRef<Role> roles, RoleAddresses &blocks,
                          SmallVectorImpl<BufferAddress> &addresses) {
    for (auto [index, role] : llvm::enumerate(roles)) {
      FunctionPort port{function, isResult, unsigned(index)};
      std::optional<BufferAddress> address = blocks.add(port, role);
      if (!address)
        return function.emitOpError("expected no ") << port.describe();
      addresses.push_back(*address);
    }
    return success();
  }

  /// Lowers `function` to the task `symbol`; its number. `results` are the
  /// blocks of its results.
  FailureOr<int> lower(func::FuncOp function, Twine symbol,
                       const ParamOffsetMap &params, RoleAddresses &results) {
    FunctionAddresses addresses{{}, {}, params};
    FunctionRoles roles(function);
    RoleAddresses arguments;
    if (failed(addPlaces(function, /*isResult=*/false, roles.arguments(),
                         arguments, addresses.arguments)) ||
        failed(addPlaces(function, /*isResult=*/true, roles.results(), results,
                         addresses.results)))
      return failure();
    return addTask(function, symbol.str(), addresses);
  }

  FailureOr<int> addTask(func::FuncOp function, const std::string &name,
                         const FunctionAddresses &addresses) {
    auto buffers =
        assignBuffers(function, addresses, tables, collectives, library);
    if (failed(buffers))
      return failure();
    writer.add(function.getLoc(), name, *buffers);
    layout.scratchBytes.push_back(buffers->scratchBytes);
    launches.push_back(std::move(buffers->launches));
    layout.program.tasks.push_back(name);
    return static_cast<int>(layout.scratchBytes.size()) - 1;
  }

  /// The address of a task's number.
  int &taskOf(memory::TaskGroup &group, FunctionKind kind) {
    switch (kind) {
    case FunctionKind::Forward:
      return group.forward;
    case FunctionKind::Backward:
      return group.backward;
    case FunctionKind::BackwardInput:
      return group.backwardInput;
    case FunctionKind::BackwardWeight:
      return group.backwardWeight;
    case FunctionKind::LossWeight:
      return layout.lossWeight;
    case FunctionKind::Probe:
      return layout.logits;
    }
    llvm_unreachable("a kind of function");
  }

  /// Lowers the functions of a part of the model, which stand in `scope`.
  LogicalResult lowerPart(Operation *scope, ModelPart part,
                          const ParamOffsetMap &params,
                          memory::TaskGroup &group,
                          const std::string &prefix = "") {
    if (group.name.empty())
      group.name = signatureOf(part, FunctionKind::Forward).name;
    for (func::FuncOp function : functionsIn(scope)) {
      const Signature &row = signatureOf(function);
      if (row.part != part)
        continue;
      RoleAddresses results;
      auto task = lower(function, prefix + row.name, params, results);
      if (failed(task))
        return failure();
      taskOf(group, row.kind) = *task;
      group.residualBytes += results.residualBytes();
      group.offloadedBytes += results.offloadedBytes();
      group.cotangentBytes += results.cotangentBytes();
    }
    return success();
  }

  static bool isDifferentiated(Operation *scope, ModelPart part) {
    auto has = [&](FunctionKind kind) {
      return bool(functionIn(scope, part, kind));
    };
    return has(FunctionKind::Backward) || (has(FunctionKind::BackwardInput) &&
                                           has(FunctionKind::BackwardWeight));
  }

  LogicalResult lowerKind(LayerOp kind, const ParamOffsetMap &params,
                          memory::TaskGroup &group) {
    if (!isDifferentiated(kind, ModelPart::Layer))
      return kind.emitOpError("expected a differentiated layer, with 'forward' "
                              "and 'backward' or its two halves");
    group.name = kind.getSymName();
    Model::function(kind, FunctionKind::Forward)
        .walk([&](AuxiliaryLossOp loss) {
          group.auxiliaryLosses.push_back(tables.auxiliaryLoss(loss.getName()));
        });
    Model::function(kind, FunctionKind::Forward).walk([&](ObserveOp op) {
      group.observations.push_back(observationOf(op));
    });
    for (FunctionKind first :
         {FunctionKind::Backward, FunctionKind::BackwardInput})
      if (func::FuncOp function = Model::function(kind, first))
        group.offloadsInput |= FunctionRoles(function)
                                   .argument(Role::InputActivation)
                                   .isOffloaded();
    return lowerPart(kind, ModelPart::Layer, params, group, group.name + ".");
  }

  /// The number of an observation; those of one name and form are one.
  int observationOf(ObserveOp op) {
    auto shape = cast<RankedTensorType>(op.getCounts().getType()).getShape();
    Observation own{op.getName().str(),
                    shape[0],
                    shape[1],
                    int64_t(op.getParts()),
                    int64_t(op.getEach().value_or(0)),
                    op.isAveraged()};
    std::vector<Observation> &known = layout.program.observations;
    auto found = llvm::find(known, own);
    if (found == known.end())
      found = known.insert(found, own);
    return int(found - known.begin());
  }

  LogicalResult lowerLoss(const ParamOffsetMap &params) {
    if (!isDifferentiated(model.module, ModelPart::Loss))
      return func::FuncOp(model.loss)
          .emitOpError("expected a differentiated model, with 'loss_backward' "
                       "or its two halves");
    if (failed(lowerPart(model.module, ModelPart::Loss, params, layout.loss)))
      return failure();
    func::FuncOp logits = model.function("logits");
    if (!logits)
      return success();
    RoleAddresses results;
    auto task = lower(logits, "logits", params, results);
    if (failed(task))
      return failure();
    layout.logits = *task;
    return success();
  }

  const Model &model;
  const ProgramMesh &mesh;
  KernelLibrary &library;
  TaskWriter writer;
  ConstantTables tables;
  memory::ModelLayout layout;
  std::vector<TaskLaunches> launches;
  CollectiveTable collectives; // into `layout`
};

} // namespace

FailureOr<LoweredModel> lowerTasks(ModuleOp module, KernelLibrary &library,
                                   bool samples) {
  auto model = Model::get(module);
  auto mesh = ProgramMesh::get(module);
  if (failed(model) || failed(mesh))
    return failure();
  auto found = model->auxiliaryLosses();
  if (failed(found))
    return failure();
  std::vector<AuxiliaryLoss> losses;
  for (const mlir::rota::AuxiliaryLossInfo &loss : *found)
    losses.push_back({loss.name, loss.coefficient, loss.weight});
  return Lowering(*model, std::move(losses), *mesh, library).run(samples);
}

} // namespace rota::lowering
