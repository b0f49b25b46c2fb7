// SPDX-License-Identifier: Apache-2.0
#include "lowering/report/Costs.h"

#include "ir/rota/cost/Traffic.h"
#include "ir/rota/experts/CountedRows.h"
#include "ir/rota/model/Model.h"
#include "ir/rota/model/Roles.h"
#include "ir/rota/sharding/Sharding.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <algorithm>
#include <fmt/format.h>
#include <numeric>

namespace rota {

/// The reason for people. Of rows that counts say are filled: how much room
/// they have, which the bytes do not show.
static std::string reasonOf(mlir::rota::CollectiveOpInterface collective) {
  std::string reason = collective.getReason().str();
  auto ragged =
      llvm::dyn_cast<mlir::rota::RaggedAllToAllOp>(collective.getOperation());
  if (!ragged)
    return reason;
  auto type = llvm::cast<mlir::RankedTensorType>(ragged.getInput().getType());
  int64_t bytes = type.getNumElements() * type.getElementTypeBitWidth() / 8;
  return reason + fmt::format("; {:.3g} % of {:.2f} MiB expected filled",
                              100 * mlir::rota::fillOf(ragged.getFill()),
                              static_cast<double>(bytes) / (1 << 20));
}

/// The op, or the kernel that it runs.
static std::string nameOf(mlir::Operation *op) {
  auto launch = llvm::dyn_cast<mlir::rota::LaunchOp>(op);
  return launch ? "kernel " + launch.getKernel().str()
                : op->getName().getStringRef().str();
}

/// Adds a collective with these times.
static void addCollective(mlir::rota::CollectiveOpInterface collective,
                          double seconds, double exposed,
                          const std::string &function, FunctionCost &cost) {
  mlir::rota::Traffic traffic = mlir::rota::trafficOf(collective);
  std::string kind = collective->getName().stripDialect().str();
  std::replace(kind.begin(), kind.end(), '_', '-');
  std::string tensor;
  llvm::raw_string_ostream(tensor) << collective->getResult(0).getType();
  cost.collectives.push_back(
      {{kind, tensor, mlir::rota::axesText(traffic.axes), traffic.ranks,
        function + ": " + reasonOf(collective)},
       traffic.bytes,
       seconds,
       exposed,
       ""});
}

/// The name of a function's task.
static std::string taskOf(mlir::func::FuncOp function) {
  std::string name = function.getSymName().str();
  auto kind = llvm::dyn_cast<mlir::rota::LayerOp>(function->getParentOp());
  return kind ? kind.getSymName().str() + "." + name : name;
}

/// Sets the times and the collectives of a function.
static void addTimes(mlir::func::FuncOp function,
                     const mlir::rota::Machine &machine, FunctionCost &cost) {
  llvm::SmallVector<mlir::Operation *> ops;
  function.walk([&](mlir::Operation *op) { ops.push_back(op); });
  std::vector<mlir::rota::OverlapStep> steps =
      mlir::rota::overlapSteps(ops, machine);
  std::vector<int> order(steps.size());
  std::iota(order.begin(), order.end(), 0);
  std::vector<double> exposed = mlir::rota::exposedSeconds(steps, order);
  llvm::DenseMap<int, size_t> uses; // places in the list by step
  for (auto [number, op] : llvm::enumerate(ops)) {
    const mlir::rota::OverlapStep &step = steps[number];
    for (int transfer : step.waits)
      if (std::string &user = cost.collectives[uses.at(transfer)].user;
          user.empty())
        user = nameOf(op);
    cost.seconds += step.work;
    if (step.transfer == 0)
      continue;
    uses[static_cast<int>(number)] = cost.collectives.size();
    addCollective(llvm::cast<mlir::rota::CollectiveOpInterface>(op),
                  step.transfer, exposed[number], taskOf(function), cost);
  }
}

void DividedAmount::add(const DividedAmount &other, double times) {
  rank += times * other.rank;
  whole += times * other.whole;
  for (const auto &[axis, amount] : other.without)
    without[axis] += times * amount;
}

/// The axes of the module's mesh that have several ranks of a stage, by name.
static std::map<std::string, mlir::rota::MeshAxis>
axesOf(mlir::rota::MeshAttr mesh) {
  std::map<std::string, mlir::rota::MeshAxis> axes;
  for (size_t i = 0; i < mesh.getSizes().size(); ++i)
    if (auto axis = static_cast<mlir::rota::MeshAxis>(i);
        mesh.getSize(axis) > 1 && axis != mlir::rota::MeshAxis::Stage)
      axes[stringifyMeshAxis(axis).str()] = axis;
  return axes;
}

/// The operations of a function, `flops` by the ops that it has. Without
/// `rota.work`, no axis divides them.
static DividedAmount workOf(mlir::func::FuncOp function, double flops) {
  auto attribute =
      mlir::rota::RotaDialect::WorkAttrHelper(function.getContext())
          .getAttr(function);
  DividedAmount work{flops, flops, {}};
  if (attribute)
    work = {static_cast<double>(attribute.getRank()),
            static_cast<double>(attribute.getWhole()),
            {}};
  for (const auto &[name, axis] : axesOf(mlir::rota::meshOf(function)))
    work.without[name] =
        attribute ? static_cast<double>(
                        attribute.getWithout()[static_cast<size_t>(axis)])
                  : work.rank;
  return work;
}

/// The bytes that wait for the backward of a layer or of the loss: activations
/// that enter its forward, and residuals.
static DividedAmount keptBytes(mlir::func::FuncOp function) {
  using mlir::rota::Role;
  DividedAmount kept;
  mlir::rota::FunctionRoles roles(function);
  if (roles.signature().kind != mlir::rota::FunctionKind::Forward)
    return kept;
  mlir::rota::MeshAttr mesh = mlir::rota::meshOf(function);
  auto axes = axesOf(mesh);
  auto add = [&](const mlir::rota::FunctionPort &port) {
    auto type = llvm::dyn_cast<mlir::RankedTensorType>(port.type());
    if (!type)
      return;
    auto bytes =
        static_cast<double>(type.getNumElements() *
                            llvm::divideCeil(type.getElementTypeBitWidth(), 8));
    mlir::rota::ShardingAttr sharding = port.sharding();
    auto refs = sharding ? mlir::rota::dividingAxes(sharding)
                         : llvm::SmallVector<mlir::rota::AxisRefAttr>();
    kept.rank += bytes;
    kept.whole += bytes * static_cast<double>(mesh.getSize(refs));
    for (const auto &[name, axis] : axes) {
      double parts = 1;
      for (mlir::rota::AxisRefAttr ref : refs)
        if (ref.getAxis() == axis)
          parts *= static_cast<double>(mesh.getSize(ref));
      kept.without[name] += bytes * parts;
    }
  };
  for (const mlir::rota::FunctionPort &port :
       roles.arguments(Role::InputActivation))
    add(port);
  for (const mlir::rota::FunctionPort &port : roles.results(Role::Residual))
    add(port);
  return kept;
}

FunctionCosts functionCosts(mlir::ModuleOp module) {
  FunctionCosts costs;
  module.walk([&](mlir::func::FuncOp function) {
    FunctionCost &cost = costs[taskOf(function)];
    cost.flops = mlir::rota::Model::flopsOf(function);
    cost.training = mlir::rota::trainingWork(function, [](auto *op) {
      auto of = llvm::dyn_cast<mlir::rota::CostOpInterface>(op);
      return of ? of.getCost().flops : 0.0;
    });
    cost.work = workOf(function, cost.flops);
    cost.kept = keptBytes(function);
  });
  return costs;
}

double FunctionCost::exposed() const {
  double seconds = 0;
  for (const CollectiveUse &use : collectives)
    seconds += use.exposed;
  return seconds;
}

void addTimes(mlir::ModuleOp module, FunctionCosts &costs) {
  mlir::rota::Machine machine = mlir::rota::machineOf(module);
  mlir::rota::Machine alone = mlir::rota::machineOf(module, /*ranks=*/1);
  bool isShared = alone.cores > 0 && mlir::rota::meshOf(module).getRanks() > 1;
  module.walk([&](mlir::func::FuncOp function) {
    FunctionCost &cost = costs[taskOf(function)];
    addTimes(function, machine, cost);
    if (isShared)
      function.walk([&](mlir::Operation *op) {
        cost.secondsAlone += alone.secondsOfOp(op);
      });
  });
}

void forEachCall(const Program &program, const FunctionCosts &costs,
                 llvm::function_ref<void(const FunctionCost &, double)> call) {
  for (const Stage &stage : program.stages) {
    std::vector<int64_t> counts = stage.countActions();
    for (size_t i = 0; i < counts.size(); ++i)
      for (const Call &each : stage.templates[i].calls)
        if (auto cost = costs.find(program.tasks[each.task]);
            cost != costs.end())
          call(cost->second, static_cast<double>(counts[i]));
  }
}

double stepOperations(const Program &program, const FunctionCosts &costs) {
  double operations = 0;
  forEachCall(program, costs, [&](const FunctionCost &cost, double times) {
    operations += times * cost.flops;
  });
  return operations;
}

} // namespace rota
