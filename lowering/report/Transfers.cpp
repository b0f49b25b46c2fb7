// SPDX-License-Identifier: Apache-2.0
//
// Collects transfers from three places: functions of the partitioned module,
// the timeline's actions, and the step's end.
#include "lowering/report/Transfers.h"

#include "mlir/IR/Remarks.h"
#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <fmt/format.h>
#include <tuple>

namespace rota {
namespace {

TransferFacts send(const std::string &tensor, const char *reason) {
  return {"send", tensor, "stage", 2, reason};
}

class Reporter {
public:
  Reporter(const FunctionCosts &costs, const pipe::Timeline &timeline,
           const Program &program, const mlir::rota::Machine &machine)
      : costs(costs, program, machine), timeline(timeline), program(program),
        owners(program.collectives.size()) {
    for (const Parameter &parameter : program.parameters)
      for (int collective : {parameter.unshard, parameter.reduceGrad})
        if (collective >= 0)
          owners[collective] = parameter.name;
  }

  std::vector<TransferReport> run() {
    simulation = costs.simulate(timeline);
    for (size_t s = 0; s < program.stages.size(); ++s) {
      reports.clear();
      addActions(program.stages[s]);
      if (simulation)
        expose(s);
      addStepEnd(s);
      keepWorst(s);
    }
    std::vector<TransferReport> sorted;
    for (auto &[facts, report] : worst)
      sorted.push_back(report);
    llvm::sort(sorted, [](const auto &a, const auto &b) {
      return std::tie(b.exposed, b.seconds, a.facts) <
             std::tie(a.exposed, a.seconds, b.facts);
    });
    return sorted;
  }

private:
  static constexpr const char *kSummed = "a gradient, summed for the optimizer";
  static constexpr const char *kUpdated =
      "a weight that the optimizer has updated";

  /// Adds a transfer of `bytes` that takes `secondsOfOne` each time.
  void add(const TransferFacts &facts, int64_t bytes, double secondsOfOne,
           double exposedShare, int64_t times = 1,
           const std::string &waiter = "update") {
    if (bytes == 0 || times == 0)
      return;
    TransferReport &report = reports[facts];
    if (exposedShare > 0 && report.waiter.empty())
      report.waiter = waiter;
    double seconds = static_cast<double>(times) * secondsOfOne;
    report.facts = facts;
    report.times += times;
    report.bytes += times * bytes;
    report.seconds += seconds;
    report.exposed += exposedShare * seconds;
  }

  /// Adds a message at the end of the step.
  void addMessage(const TransferFacts &facts, int64_t bytes) {
    add(facts, bytes, costs.secondsOfMessage(bytes), 1);
  }

  /// Facts of a collective on a parameter; the caller gives the reason.
  TransferFacts factsOf(int collective, const std::string &parameter,
                        const char *reason) const {
    const Collective &c = program.collectives[collective];
    std::string axes;
    for (int axis : c.axes)
      axes += (axes.empty() ? "" : "+") + program.mesh[axis].name;
    return {kCollectiveNames[static_cast<int>(c.kind)], parameter, axes,
            groupSize(program.mesh, c.axes), reason};
  }

  TransferFacts factsOf(ActionKind kind, const Transfer &transfer) const {
    if (kind == ActionKind::Offload)
      return {"copy", "residuals", "", 1, "to wait in host memory"};
    if (kind == ActionKind::Fetch)
      return {"copy", "residuals", "", 1, "from host memory, for backward"};
    return factsOf(transfer.collective, owners.at(transfer.collective),
                   kind == ActionKind::Unshard
                       ? "a weight, put together for its uses"
                       : "a gradient, summed after its uses");
  }

  void addActions(const Stage &stage) {
    std::vector<int64_t> counts = stage.countActions();
    for (size_t i = 0; i < counts.size(); ++i) {
      const ActionTemplate &form = stage.templates[i];
      int64_t count = counts[i] * timesOf(form.kind);
      addFunctions(form, count);
      addMessages(form, count);
      addExchanges(stage, form, count);
    }
  }

  /// Accumulation steps in which actions of that kind do something.
  int64_t timesOf(ActionKind kind) const {
    bool isOfUpdates =
        kind == ActionKind::SumGrad || kind == ActionKind::Refresh;
    return isOfUpdates ? 1 : program.accumulationSteps;
  }

  /// Adds collectives inside functions, exposed but for the work beside them.
  void addFunctions(const ActionTemplate &form, int64_t count) {
    for (const Call &call : form.calls)
      if (const FunctionCost *cost = costs.costOf(call.task))
        for (const CollectiveUse &use : cost->collectives)
          add(use.facts, use.bytes, use.seconds,
              std::min(1.0, use.exposed / use.seconds), count, use.user);
  }

  /// Adds the timeline's transfers; `expose` fills in their exposed times.
  void addMessages(const ActionTemplate &form, int64_t count) {
    if (form.kind == ActionKind::SendForward)
      add(send("activations", "to the next stage"), form.bytes,
          costs.secondsOfMessage(form.bytes), 0, count);
    if (form.kind == ActionKind::SendBackward)
      add(send("cotangents", "to the stage before"), form.bytes,
          costs.secondsOfMessage(form.bytes), 0, count);
    for (const Transfer &transfer : form.transfers) {
      TransferFacts facts = factsOf(form.kind, transfer);
      add(facts, costs.bytesOf(transfer), costs.secondsOf(transfer), 0, count);
      sources[facts] = form.kind;
    }
  }

  /// The compute action of a rank that waits longest where `exposed` counts.
  std::string longestWaiter(size_t rank,
                            double pipe::Exposure::*exposed) const {
    auto length = [](const pipe::Wait &wait) {
      return wait.span.end - wait.span.start;
    };
    const pipe::Wait *longest = nullptr;
    for (const pipe::Wait &wait : simulation->ranks[rank].waits)
      if (wait.exposed == exposed &&
          (!longest || length(wait) > length(*longest)))
        longest = &wait;
    if (!longest)
      return "";
    const std::vector<pipe::Action> &row = timeline.ranks[rank];
    for (size_t a = 0; a < row.size(); ++a)
      if (isCompute(row[a].kind) &&
          simulation->spans[rank][a].start >= longest->span.end)
        return toString(row[a]);
    return "next step";
  }

  /// Adds what SUM_GRAD and REFRESH exchange, in the same way.
  void addExchanges(const Stage &stage, const ActionTemplate &form,
                    int64_t count) {
    for (int update : form.updates) {
      int collective = exchangeOf(program, stage, form, update);
      const Update &u = stage.updates[static_cast<size_t>(update)];
      TransferFacts facts =
          factsOf(collective, program.parameters[u.parameter].name,
                  form.kind == ActionKind::Refresh ? kUpdated : kSummed);
      add(facts, costs.bytesOf(program.collectives[collective]),
          costs.secondsOf(program.collectives[collective]), 0, count);
      sources[facts] = form.kind;
    }
  }

  /// Divides the simulator's exposed times among the reports, by their seconds.
  void expose(size_t rank) {
    auto divide = [&](double pipe::Exposure::*exposed, int64_t times,
                      auto &&isMeant) {
      double seconds =
          static_cast<double>(times) * simulation->ranks[rank].exposed.*exposed;
      double total = 0;
      if (seconds <= 0)
        return;
      std::string waiter = longestWaiter(rank, exposed);
      for (auto &[facts, report] : reports)
        if (isMeant(facts))
          total += report.seconds;
      for (auto &[facts, report] : reports)
        if (isMeant(facts)) {
          report.exposed += std::min(1.0, seconds / total) * report.seconds;
          report.waiter = waiter;
        }
    };
    auto divideOf = [&](double pipe::Exposure::*exposed, ActionKind kind) {
      divide(exposed, timesOf(kind), [&](const TransferFacts &facts) {
        auto it = sources.find(facts);
        return it != sources.end() && it->second == kind;
      });
    };
    divide(&pipe::Exposure::messages, program.accumulationSteps,
           [](const TransferFacts &facts) { return facts.kind == "send"; });
    divideOf(&pipe::Exposure::gathers, ActionKind::Unshard);
    divideOf(&pipe::Exposure::reductions, ActionKind::ReduceGrad);
    divideOf(&pipe::Exposure::offloads, ActionKind::Offload);
    divideOf(&pipe::Exposure::fetches, ActionKind::Fetch);
    divideOf(&pipe::Exposure::sums, ActionKind::SumGrad);
    divideOf(&pipe::Exposure::refreshes, ActionKind::Refresh);
  }

  /// Adds transfers at the end of the step, where nothing computes.
  void addStepEnd(size_t stage) {
    const std::vector<Update> &updates = program.stages[stage].updates;
    std::vector<InTimeline> done = updatesInTimeline(program.stages[stage]);
    for (size_t u = 0; u < updates.size(); ++u) {
      const Update &update = updates[u];
      const Parameter &parameter = program.parameters[update.parameter];
      for (int collective : costs.atStepEnd(update, done[u]))
        add(factsOf(collective, parameter.name,
                    collective == parameter.refresh ? kUpdated : kSummed),
            costs.bytesOf(program.collectives[collective]),
            costs.secondsOf(program.collectives[collective]), 1);
      if (const FunctionCost *cost = costs.costOf(parameter.updateTask))
        for (const CollectiveUse &use : cost->collectives)
          add({use.facts.kind, parameter.name, use.facts.axes, use.facts.ranks,
               "inside its update"},
              use.bytes, use.seconds, 1);
      int64_t stored = partElements(parameter.shape, parameter.storageDivision,
                                    program.mesh);
      for (const ArenaAddress &place : update.gradients)
        if (place.stage != static_cast<int>(stage))
          addMessage(
              send(parameter.name, "a gradient, to the stage that updates it"),
              byteSize(parameter.gradient) * stored);
      for (size_t i = 0; !parameter.isFrozen && i < update.copies.size(); ++i)
        addMessage(
            send(parameter.name, "a weight, to another stage that uses it"),
            byteSize(parameter.compute) * stored);
    }
  }

  void keepWorst(size_t stage) {
    for (auto &[facts, report] : reports) {
      report.stage = static_cast<int>(stage);
      TransferReport &kept = worst[facts];
      if (std::tuple(report.exposed, report.seconds) >
          std::tuple(kept.exposed, kept.seconds))
        kept = report;
    }
  }

  TransferEstimates costs;
  const pipe::Timeline &timeline;
  const Program &program;
  std::vector<std::string> owners; // parameters, by the collective
  std::map<TransferFacts, TransferReport> reports, worst;
  std::map<TransferFacts, ActionKind> sources; // actions that transfer
  std::optional<pipe::Simulation> simulation;
};

} // namespace

std::vector<TransferReport>
explainTransfers(const FunctionCosts &costs, const pipe::Timeline &timeline,
                 const Program &program, const mlir::rota::Machine &machine) {
  return Reporter(costs, timeline, program, machine).run();
}

static std::string milliseconds(double seconds) {
  return fmt::format("{:.3f}", 1e3 * seconds);
}

void remarkTransfers(mlir::Location loc,
                     const std::vector<TransferReport> &reports) {
  namespace remark = mlir::remark;
  for (const TransferReport &r : reports) {
    auto remark = remark::analysis(
        loc, remark::RemarkOpts::name(r.facts.kind).category("communication"));
    remark << remark::reason("{0}", r.facts.reason)
           << remark::metric("Tensor", r.facts.tensor)
           << remark::metric("Bytes", r.bytes)
           << remark::metric("Axes", r.facts.axes)
           << remark::metric("Ranks", r.facts.ranks)
           << remark::metric("Stage", r.stage)
           << remark::metric("Times", r.times)
           << remark::metric("ExposedMs", milliseconds(r.exposed))
           << remark::metric("HiddenMs", milliseconds(r.hidden()));
    if (!r.waiter.empty())
      remark << remark::metric("Waiter", r.waiter);
  }
}

std::string describeTransfers(const std::vector<TransferReport> &reports,
                              const mlir::rota::Machine &machine) {
  size_t width = 6;
  for (const TransferReport &r : reports)
    width = std::max(width, r.facts.tensor.size());
  std::string text = fmt::format(
      "transfers of a rank in a step, on the stage where they take longest "
      "(machine {})\n"
      "{:>10}  {:>10}  {:>7}  {:>10}  {:<5}  {:<17}  {:<13}  {:<{}}  {}\n",
      machine.name, "exposed ms", "hidden ms", "times", "MiB", "stage",
      "transfer", "axes", "tensor", width, "why");
  for (const TransferReport &r : reports)
    text += fmt::format("{:>10}  {:>10}  {:>7}  {:>10.2f}  {:<5}  "
                        "{:<17}  {:<13}  {:<{}}  {}\n",
                        milliseconds(r.exposed), milliseconds(r.hidden()),
                        r.times, static_cast<double>(r.bytes) / (1 << 20),
                        r.stage, r.facts.kind, r.facts.axes, r.facts.tensor,
                        width, r.facts.reason);
  if (reports.empty())
    text += "none\n";
  return text;
}

} // namespace rota
