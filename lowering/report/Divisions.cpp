// SPDX-License-Identifier: Apache-2.0
#include "lowering/report/Divisions.h"

#include "runtime/text/Text.h"

#include <algorithm>
#include <fmt/format.h>
#include <functional>

namespace rota {
namespace {

/// Amounts of one stage.
struct StageAmounts {
  DividedAmount work, kept, parameters, optimizer;
};

class StageReader {
public:
  StageReader(const Program &program, const FunctionCosts &costs)
      : program(program), costs(costs) {}

  StageAmounts read(const Stage &stage) const {
    StageAmounts amounts;
    std::vector<int64_t> counts = stage.countActions();
    for (size_t i = 0; i < counts.size(); ++i)
      amounts.work.add(
          workOf(stage.templates[i]),
          static_cast<double>(counts[i] * program.accumulationSteps));
    amounts.kept = peakOf(stage);
    for (const Update &update : stage.updates) {
      const Parameter &parameter = program.parameters[update.parameter];
      amounts.parameters.add(partsOf(parameter, parameter.storageDivision), 1);
      amounts.optimizer.add(partsOf(parameter, parameter.optimizerDivision), 1);
    }
    return amounts;
  }

  /// Copies of parameters that other stages own.
  void addCopies(std::vector<StageAmounts> &stages) const {
    for (const Stage &stage : program.stages)
      for (const Update &update : stage.updates)
        for (const ArenaAddress &copy : update.copies) {
          const Parameter &parameter = program.parameters[update.parameter];
          stages[copy.stage].parameters.add(
              partsOf(parameter, parameter.storageDivision), 1);
        }
  }

private:
  DividedAmount sumOf(const ActionTemplate &form,
                      DividedAmount FunctionCost::*amount) const {
    DividedAmount sum;
    for (const Call &call : form.calls)
      if (auto cost = costs.find(program.tasks[call.task]); cost != costs.end())
        sum.add(cost->second.*amount, 1);
    return sum;
  }

  DividedAmount workOf(const ActionTemplate &form) const {
    return sumOf(form, &FunctionCost::work);
  }

  /// Bytes that microbatches keep for their backward at the peak of the
  /// timeline.
  DividedAmount peakOf(const Stage &stage) const {
    std::map<int, DividedAmount> kept; // one microbatch, by chunk
    for (const ActionTemplate &form : stage.templates)
      if (form.kind == ActionKind::Forward)
        kept[form.chunk] = sumOf(form, &FunctionCost::kept);
    std::map<int, double> live, most; // microbatches, by chunk
    double held = 0, peak = 0;
    for (size_t i = 0; i < stage.actions.size(); ++i) {
      const ActionTemplate &form = stage.templateOf(static_cast<int>(i));
      double change = form.kind == ActionKind::Forward ? 1
                      : form.kind == ActionKind::Backward ||
                              form.kind == ActionKind::BackwardWeight
                          ? -1
                          : 0;
      live[form.chunk] += change;
      held += change * kept[form.chunk].rank;
      if (held > peak) {
        peak = held;
        most = live;
      }
    }
    DividedAmount sum;
    for (const auto &[chunk, microbatches] : most)
      sum.add(kept[chunk], microbatches);
    return sum;
  }

  /// Elements of one rank's part of a tensor.
  DividedAmount partsOf(const Parameter &parameter,
                        const Division &division) const {
    auto elements = [&](const std::vector<MeshAxis> &mesh) {
      return static_cast<double>(partElements(parameter.shape, division, mesh));
    };
    DividedAmount amount{elements(program.mesh),
                         static_cast<double>(elementCount(parameter)),
                         {}};
    for (size_t i = 0; i < program.mesh.size(); ++i) {
      std::vector<MeshAxis> other = program.mesh;
      other[i].size = 1;
      amount.without[other[i].name] = elements(other);
    }
    return amount;
  }

  const Program &program;
  const FunctionCosts &costs;
};

/// Amounts of all stages of one kind.
class Amounts {
public:
  Amounts(const std::vector<StageAmounts> &stages,
          DividedAmount StageAmounts::*kind)
      : stages(stages), kind(kind) {}

  double most() const {
    return largest([](const DividedAmount &amount) { return amount.rank; });
  }
  double whole() const {
    double sum = 0;
    for (const StageAmounts &stage : stages)
      sum += (stage.*kind).whole;
    return sum;
  }
  /// 1 where there is nothing to divide.
  double dividedBy(const std::string &axis) const {
    if (most() == 0)
      return 1;
    if (axis != "stage")
      return largest([&](const DividedAmount &amount) {
               auto found = amount.without.find(axis);
               return found == amount.without.end() ? amount.rank
                                                    : found->second;
             }) /
             most();
    double sum = 0;
    for (const StageAmounts &stage : stages)
      sum += (stage.*kind).rank;
    return sum / most();
  }

private:
  double
  largest(const std::function<double(const DividedAmount &)> &amountOf) const {
    double most = 0;
    for (const StageAmounts &stage : stages)
      most = std::max(most, amountOf(stage.*kind));
    return most;
  }

  const std::vector<StageAmounts> &stages;
  DividedAmount StageAmounts::*kind;
};

} // namespace

DivisionReport explainDivision(const Program &program,
                               const FunctionCosts &costs) {
  StageReader reader(program, costs);
  std::vector<StageAmounts> stages;
  for (const Stage &stage : program.stages)
    stages.push_back(reader.read(stage));
  reader.addCopies(stages);
  Amounts work(stages, &StageAmounts::work), kept(stages, &StageAmounts::kept),
      parameters(stages, &StageAmounts::parameters),
      optimizer(stages, &StageAmounts::optimizer);
  DivisionReport report{
      work.most(), work.whole() / static_cast<double>(rankCount(program)), {}};
  for (const auto &[axis, size] : program.mesh) {
    if (size == 1)
      continue;
    AxisDivision &division = report.axes.emplace_back();
    division.axis = axis;
    division.ranks = size;
    division.work = work.dividedBy(axis);
    if (axis != "stage")
      division.activations = kept.dividedBy(axis);
    division.parameters = parameters.dividedBy(axis);
    division.optimizer = optimizer.dividedBy(axis);
  }
  return report;
}

std::string describeDivision(const DivisionReport &report) {
  std::string text = fmt::format(
      "work of the busiest rank: {} operations a step, {:.2f} times an even "
      "share\n",
      grouped(static_cast<int64_t>(report.operations)),
      report.evenShare > 0 ? report.operations / report.evenShare : 1);
  for (const AxisDivision &axis : report.axes) {
    text += fmt::format("  {}={} divides the work by {:.2f}", axis.axis,
                        axis.ranks, axis.work);
    if (axis.activations)
      text += fmt::format(", the activations by {:.2f}", *axis.activations);
    text += fmt::format(
        ", the parameters by {:.2f}, masters and optimizer states by {:.2f}\n",
        axis.parameters, axis.optimizer);
  }
  return text;
}

std::string describeShortfall(const DivisionReport &report) {
  std::string text;
  for (const AxisDivision &axis : report.axes)
    if (axis.fallsShort())
      text +=
          fmt::format("{}={} divides the work by {:.2f} alone: {}\n", axis.axis,
                      axis.ranks, axis.work,
                      axis.axis == "stage"
                          ? "stages have unequal work"
                          : "'--remarks shard' lists what its ranks repeat");
  return text;
}

} // namespace rota
