// SPDX-License-Identifier: Apache-2.0
//
// Collects transfers from three places: functions of the partitioned module,
// the timeline's actions, and the step's end.
#include "tools/rota/Explain.h"

#include "ir/rota/Rota.h"
#include "ir/rota/Traffic.h"
#include "passes/pipeline/Simulator.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <fmt/format.h>
#include <tuple>

namespace rota {

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

static std::string axisNames(llvm::ArrayRef<mlir::rota::AxisRefAttr> axes) {
  std::string names;
  for (mlir::rota::AxisRefAttr ref : axes)
    names +=
        (names.empty() ? "" : "+") + stringifyMeshAxis(ref.getAxis()).str();
  return names;
}

FunctionCosts functionCosts(mlir::ModuleOp module) {
  FunctionCosts costs;
  module.walk([&](mlir::func::FuncOp function) {
    std::string name = function.getSymName().str();
    if (auto kind =
            llvm::dyn_cast<mlir::rota::LayerOp>(function->getParentOp()))
      name = kind.getSymName().str() + "." + name;
    FunctionCost &cost = costs[name];
    function.walk([&](mlir::Operation *op) {
      if (auto priced = llvm::dyn_cast<mlir::rota::CostOpInterface>(op))
        cost.flops += priced.getCost().flops;
      auto collective = llvm::dyn_cast<mlir::rota::CollectiveOpInterface>(op);
      if (!collective)
        return;
      mlir::rota::Traffic traffic = mlir::rota::trafficOf(collective);
      if (traffic.bytes == 0)
        return;
      std::string kind = op->getName().stripDialect().str();
      std::replace(kind.begin(), kind.end(), '_', '-');
      cost.collectives.push_back({kind, axisNames(traffic.axes),
                                  collective.getReason().str(), traffic.bytes});
    });
  });
  return costs;
}

//===----------------------------------------------------------------------===//
// A step
//===----------------------------------------------------------------------===//

namespace {

namespace traffic = mlir::rota::traffic;

class Reporter {
public:
  Reporter(const FunctionCosts &costs, const pipe::Timeline &timeline,
           const Program &program, const Assumptions &assumptions)
      : costs(costs), timeline(timeline), program(program),
        assumptions(assumptions) {}

  std::vector<TransferReport> run() {
    auto simulation = pipe::simulate(timeline, costTable());
    for (size_t s = 0; s < program.stages.size(); ++s) {
      reports.clear();
      addFunctions(s);
      addActions(s);
      if (simulation)
        expose(simulation->ranks[s].exposed);
      addStepEnd(s);
      keepWorst(s);
    }
    std::vector<TransferReport> sorted;
    for (auto &[key, report] : worst)
      sorted.push_back(report);
    llvm::sort(sorted, [](const auto &a, const auto &b) {
      return std::tie(b.exposed, b.seconds, a.kind, a.axes, a.reason) <
             std::tie(a.exposed, a.seconds, b.kind, b.axes, b.reason);
    });
    return sorted;
  }

private:
  using Key = std::tuple<std::string, std::string, std::string>;

  double secondsOf(int64_t bytes) const {
    return assumptions.latency +
           static_cast<double>(bytes) / assumptions.bytesPerSecond;
  }

  const FunctionCost *costOf(const Call &call) const {
    auto found = costs.find(program.tasks[call.task]);
    return found == costs.end() ? nullptr : &found->second;
  }

  /// Of the calls of an action, with the collectives inside them.
  double computeSeconds(const Action &action) const {
    double seconds = 0;
    for (const Call &call : action.calls)
      if (const FunctionCost *cost = costOf(call)) {
        seconds += cost->flops / assumptions.flopsPerSecond;
        for (const CollectiveUse &use : cost->collectives)
          seconds += secondsOf(use.bytes);
      }
    return seconds;
  }

  double transferSeconds(const Action &action) const {
    double seconds = 0;
    for (const Transfer &transfer : action.transfers)
      if (int64_t bytes = bytesOf(transfer))
        seconds += secondsOf(bytes);
    return seconds;
  }

  /// What the simulator asks for: each chunk's actions and transfers cost what
  /// the last of them in the timeline do.
  pipe::CostTable costTable() const {
    pipe::CostTable table;
    int chunks = timeline.shape.chunks();
    table.chunks.assign(chunks, {});
    table.transfers.assign(chunks, {});
    for (const Stage &stage : program.stages)
      for (const Action &action : stage.actions) {
        if (isCompute(action.kind))
          table.chunks[action.chunk][static_cast<int>(action.kind)] =
              computeSeconds(action);
        else if (isSend(action.kind))
          table.send = secondsOf(action.bytes);
        else if (int place = transferPlace(action.kind); place >= 0)
          table.transfers[action.chunk][place] = transferSeconds(action);
      }
    return table;
  }

  /// The place of a transfer's kind in the simulator's table; -1: none.
  static int transferPlace(ActionKind kind) {
    switch (kind) {
    case ActionKind::Unshard:
      return 0;
    case ActionKind::ReduceGrad:
      return 1;
    case ActionKind::Offload:
      return 2;
    case ActionKind::Fetch:
      return 3;
    default:
      return -1;
    }
  }

  int64_t bytesOf(const Collective &collective) const {
    int64_t ranks = groupSize(program.mesh, collective.axes);
    int64_t whole = collective.outer * collective.size * collective.inner *
                    byteSize(collective.type);
    int64_t part = (whole + ranks - 1) / ranks;
    switch (collective.kind) {
    case Collective::Kind::AllGather:
      return traffic::allGather(part, ranks);
    case Collective::Kind::ReduceScatter:
      return traffic::reduceScatter(part, ranks);
    case Collective::Kind::AllReduce:
      return traffic::allReduce(whole, ranks);
    case Collective::Kind::AllToAll:
      return traffic::allToAll(part, ranks);
    case Collective::Kind::Permute:
      return traffic::permute(whole);
    case Collective::Kind::Slice:
      return 0;
    }
    return 0;
  }
  int64_t bytesOf(const Transfer &transfer) const {
    return transfer.collective < 0
               ? transfer.bytes
               : bytesOf(program.collectives[transfer.collective]);
  }

  void add(const Key &key, int64_t bytes, double exposedShare) {
    if (bytes == 0)
      return;
    TransferReport &report = reports[key];
    std::tie(report.kind, report.axes, report.reason) = key;
    ++report.times;
    report.bytes += bytes;
    report.seconds += secondsOf(bytes);
    report.exposed += exposedShare * secondsOf(bytes);
  }

  static const char *nameOf(Collective::Kind kind) {
    switch (kind) {
    case Collective::Kind::AllGather:
      return "all-gather";
    case Collective::Kind::ReduceScatter:
      return "reduce-scatter";
    case Collective::Kind::AllReduce:
      return "all-reduce";
    case Collective::Kind::AllToAll:
      return "all-to-all";
    case Collective::Kind::Slice:
      return "slice";
    case Collective::Kind::Permute:
      return "permute";
    }
    return "";
  }

  Key keyOf(int collective) const {
    const Collective &c = program.collectives[collective];
    std::string axes;
    for (int axis : c.axes)
      axes += (axes.empty() ? "" : "+") + program.mesh[axis].name;
    return {nameOf(c.kind), axes, c.reason};
  }

  /// Collectives inside functions: the rank waits for each.
  void addFunctions(size_t stage) {
    for (const Action &action : program.stages[stage].actions)
      for (const Call &call : action.calls)
        if (const FunctionCost *cost = costOf(call))
          for (const CollectiveUse &use : cost->collectives)
            add({use.kind, use.axes,
                 program.tasks[call.task] + ": " + use.reason},
                use.bytes, 1);
  }

  /// What the timeline moves; how much of it is exposed comes later.
  void addActions(size_t stage) {
    for (const Action &action : program.stages[stage].actions) {
      if (action.kind == ActionKind::SendForward)
        add({"send", "stage", "activations to the next stage"}, action.bytes,
            0);
      if (action.kind == ActionKind::SendBackward)
        add({"send", "stage", "cotangents to the stage before"}, action.bytes,
            0);
      for (const Transfer &transfer : action.transfers) {
        bool copy = transfer.collective < 0;
        std::string name = toString(action.kind);
        Key key = copy ? Key{"copy", "", name + " of residuals"}
                       : keyOf(transfer.collective);
        add(key, bytesOf(transfer), 0);
        sources[key] = action.kind;
      }
    }
  }

  /// Divides the simulator's exposed times among the reports, by their seconds.
  void expose(const pipe::Exposure &exposed) {
    auto divide = [&](double seconds, auto &&isMeant) {
      double total = 0;
      for (auto &[key, report] : reports)
        if (isMeant(key))
          total += report.seconds;
      for (auto &[key, report] : reports)
        if (isMeant(key))
          report.exposed += std::min(1.0, seconds / total) * report.seconds;
    };
    auto from = [&](ActionKind kind) {
      return [this, kind](const Key &key) {
        auto it = sources.find(key);
        return it != sources.end() && it->second == kind;
      };
    };
    divide(exposed.messages,
           [](const Key &key) { return std::get<0>(key) == "send"; });
    divide(exposed.gathers, from(ActionKind::Unshard));
    divide(exposed.reductions, from(ActionKind::ReduceGrad));
    divide(exposed.offloads, from(ActionKind::Offload));
    divide(exposed.fetches, from(ActionKind::Fetch));
  }

  /// The optimizer's part: nothing computes meanwhile.
  void addStepEnd(size_t stage) {
    for (const Update &update : program.stages[stage].updates) {
      const Parameter &parameter = program.parameters[update.parameter];
      for (int collective : parameter.reduce)
        add(keyOf(collective), bytesOf(program.collectives[collective]), 1);
      if (parameter.refresh >= 0)
        add(keyOf(parameter.refresh),
            bytesOf(program.collectives[parameter.refresh]), 1);
      int64_t stored = partElements(parameter.shape, parameter.storageDivision,
                                    program.mesh);
      for (const Place &place : update.gradients)
        if (place.stage != static_cast<int>(stage))
          add({"send", "stage", "gradient of '" + parameter.name + "'"},
              4 * stored, 1);
      for (size_t i = 0; i < update.copies.size(); ++i)
        add({"send", "stage", "copy of '" + parameter.name + "'"},
            byteSize(parameter.compute) * stored, 1);
    }
  }

  void keepWorst(size_t stage) {
    for (auto &[key, report] : reports) {
      report.stage = static_cast<int>(stage);
      TransferReport &kept = worst[key];
      if (std::tuple(report.exposed, report.seconds) >
          std::tuple(kept.exposed, kept.seconds))
        kept = report;
    }
  }

  const FunctionCosts &costs;
  const pipe::Timeline &timeline;
  const Program &program;
  const Assumptions &assumptions;
  std::map<Key, TransferReport> reports, worst;
  std::map<Key, ActionKind> sources; // of what actions transfer
};

} // namespace

std::vector<TransferReport> explainTransfers(const FunctionCosts &costs,
                                             const pipe::Timeline &timeline,
                                             const Program &program,
                                             const Assumptions &assumptions) {
  return Reporter(costs, timeline, program, assumptions).run();
}

std::string describeTransfers(const std::vector<TransferReport> &reports,
                              const Assumptions &assumptions) {
  std::string text = fmt::format(
      "transfers of a rank in a step, on the stage where they take longest "
      "(assumed: {:.0f} GFLOP/s, {:.1f} GB/s, {:.0f} us)\n"
      "{:>10}  {:>10}  {:>7}  {:>10}  {:<5}  {:<14}  {:<13}  {}\n",
      assumptions.flopsPerSecond / 1e9, assumptions.bytesPerSecond / 1e9,
      assumptions.latency * 1e6, "exposed ms", "total ms", "times", "MiB",
      "stage", "transfer", "axes", "why");
  for (const TransferReport &r : reports)
    text += fmt::format(
        "{:>10.3f}  {:>10.3f}  {:>7}  {:>10.2f}  {:<5}  {:<14}  {:<13}  {}\n",
        1e3 * r.exposed, 1e3 * r.seconds, r.times,
        static_cast<double>(r.bytes) / (1 << 20), r.stage, r.kind, r.axes,
        r.reason);
  if (reports.empty())
    text += "none\n";
  return text;
}

} // namespace rota
