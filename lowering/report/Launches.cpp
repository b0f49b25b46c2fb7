// SPDX-License-Identifier: Apache-2.0
//
// Follows the runtime's step (runtime/train/step) without running it.
#include "lowering/report/Launches.h"

#include "runtime/device/cuda/ServiceKernels.h"
#include "runtime/program/RuntimeMemory.h"
#include "runtime/program/UpdatePlaces.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <tuple>

namespace rota {
namespace {

/// Adds up the launches of a rank of one stage.
class LaunchCounter {
public:
  LaunchCounter(const Program &program,
                const std::vector<lowering::TaskLaunches> &launches, int stage)
      : program(program), launches(launches), number(stage),
        stage(program.stages[static_cast<size_t>(stage)]) {}

  StepLaunches count(bool decides) {
    if (hasMeans(program))
      addForwards();
    addWeights();
    addTimeline();
    add(cuda::kNoteKernel, 1); // Rank::positionOfOptimizer
    addGradientSums();
    addNorm();
    add(cuda::kFinishStepKernel, 1);
    add(cuda::kDecideStepKernel, decides ? 1 : 0);
    addTogether(&Parameter::updateTask);
    StepLaunches step{number, {}};
    for (auto &[name, row] : rows)
      if (row.launches > 0)
        step.rows.push_back(row);
    std::sort(step.rows.begin(), step.rows.end(),
              [](const LaunchRow &a, const LaunchRow &b) {
                return std::tie(b.bytes, a.kernel) <
                       std::tie(a.bytes, b.kernel);
              });
    return step;
  }

private:
  const Parameter &parameterOf(const Update &update) const {
    return program.parameters[static_cast<size_t>(update.parameter)];
  }

  /// Adds `times` launches of `bytes` each.
  void add(const std::string &kernel, int64_t times, double bytes = 0,
           double operations = 0) {
    LaunchRow &row = rows[kernel];
    row.kernel = kernel;
    row.launches += times;
    row.bytes += static_cast<double>(times) * bytes;
    row.operations += static_cast<double>(times) * operations;
  }

  void addFill(int64_t bytes, int64_t times = 1) {
    add("fill", bytes > 0 ? times : 0, static_cast<double>(bytes));
  }

  void addTask(int task, int64_t times) {
    for (const lowering::TaskLaunch &launch :
         launches[static_cast<size_t>(task)])
      add(launch.kernel, times, launch.bytes, launch.operations);
  }

  /// Executor::observe.
  void addForwards() {
    int64_t times = program.accumulationSteps;
    add(cuda::kNoteKernel, times * static_cast<int64_t>(stage.actions.size()));
    std::vector<int64_t> counts = stage.countActions();
    for (size_t t = 0; t < counts.size(); ++t)
      if (const ActionTemplate &form = stage.templates[t];
          isCompute(form.kind) && isForward(form.kind))
        for (const Call &call : form.evalCalls)
          addTask(call.task, times * counts[t]);
  }

  /// Cotangents.
  void addWeights() {
    if (program.auxiliaryLosses.empty())
      return;
    auto microbatches = static_cast<int64_t>(stage.startMicrobatches.size());
    for (const Call &call : stage.startCalls)
      addTask(call.task, program.accumulationSteps * microbatches);
    add(cuda::kCotangentsKernel, stage.auxiliaryCotangents >= 0 ? 1 : 0);
  }

  /// Executor::walk. Both halves of a pair have one position.
  void addTimeline() {
    int64_t times = program.accumulationSteps;
    std::vector<int64_t> counts = stage.countActions();
    for (size_t t = 0; t < counts.size(); ++t) {
      const ActionTemplate &form = stage.templates[t];
      int64_t actions = times * counts[t];
      add(cuda::kNoteKernel, form.startsPair ? 0 : actions);
      for (const Clear &clear : form.clears)
        addFill(clear.bytes, actions);
      for (const Call &call : form.calls)
        addTask(call.task, actions);
    }
  }

  /// GradientSums.
  void addGradientSums() {
    for (size_t owner = 0; owner < program.stages.size(); ++owner)
      for (const Update &update : program.stages[owner].updates)
        for (size_t g = 1; g < update.gradients.size(); ++g)
          addTerm(parameterOf(update), static_cast<int>(owner),
                  update.gradients[g].stage);
    for (const Update &update : stage.updates)
      if (parameterOf(update).refresh >= 0)
        addFillsBeside(update);
  }

  /// A term on stage `place` of a gradient of stage `owner`.
  void addTerm(const Parameter &parameter, int owner, int place) {
    int64_t elements =
        partElements(parameter.shape, parameter.storageDivision, program.mesh);
    int64_t size = byteSize(parameter.gradient), most = elements;
    if (owner != place)
      most = runtimeMemory(program).termElements;
    if (owner == number)
      for (int64_t at = 0; at < elements; at += most)
        add(cuda::kAddKernels[static_cast<int>(parameter.gradient)], 1,
            static_cast<double>(3 * size * std::min(most, elements - at)));
    if (place == number)
      addFill(size * elements);
  }

  /// GradientSums::zeroOthers, for a part in the middle.
  void addFillsBeside(const Update &update) {
    const Parameter &p = parameterOf(update);
    int64_t size = byteSize(p.gradient);
    int64_t whole =
        size * partElements(p.shape, p.storageDivision, program.mesh);
    if (!isGradientInPlace(program, update))
      return addFill(whole);
    std::vector<int64_t> first(program.mesh.size());
    int64_t before =
        gradientPlace(program, update, first) - update.gradients[0].offset;
    int64_t own =
        size * partElements(p.shape, p.optimizerDivision, program.mesh);
    addFill(before);
    addFill(whole - own - before);
  }

  /// GradientNorm.
  void addNorm() {
    addTogether(&Parameter::squareTask);
    double bytes = 0;
    for (const Update &update : stage.updates)
      if (!parameterOf(update).isFrozen)
        bytes += static_cast<double>(4 * parameterOf(update).rows);
    add(cuda::kSumRowsKernel, bytes > 0 ? 1 : 0, bytes);
  }

  /// Device::launchTogether of a task of each update.
  void addTogether(int Parameter::*task) {
    std::map<std::string, LaunchRow> tables;
    for (const Update &update : stage.updates) {
      const Parameter &parameter = parameterOf(update);
      if (parameter.isFrozen)
        continue;
      const auto &ofTask = launches[static_cast<size_t>(parameter.*task)];
      if (ofTask.size() != 1 || ofTask[0].table.empty()) {
        addTask(parameter.*task, 1);
        continue;
      }
      LaunchRow &row = tables[ofTask[0].table];
      row.bytes += ofTask[0].bytes;
      row.operations += ofTask[0].operations;
    }
    for (const auto &[table, row] : tables)
      add(lowering::kernelName(table), 1, row.bytes, row.operations);
  }

  const Program &program;
  const std::vector<lowering::TaskLaunches> &launches;
  const int number;
  const Stage &stage;
  std::map<std::string, LaunchRow> rows; // by name
};

} // namespace

LaunchRow StepLaunches::sum() const {
  LaunchRow sum{"in all"};
  for (const LaunchRow &row : rows) {
    sum.launches += row.launches;
    sum.bytes += row.bytes;
    sum.operations += row.operations;
  }
  return sum;
}

StepLaunches stepLaunches(const Program &program,
                          const std::vector<lowering::TaskLaunches> &launches,
                          bool decides) {
  StepLaunches most;
  for (size_t s = 0; s < program.stages.size(); ++s) {
    StepLaunches step =
        LaunchCounter(program, launches, static_cast<int>(s)).count(decides);
    if (s == 0 || step.sum().launches > most.sum().launches)
      most = std::move(step);
  }
  return most;
}

std::string describeLaunches(const StepLaunches &step) {
  std::vector<LaunchRow> rows = step.rows;
  rows.push_back(step.sum());
  size_t width = 6;
  for (const LaunchRow &row : rows)
    width = std::max(width, row.kernel.size());
  std::string text = fmt::format(
      "launches of a rank in a step, on the stage that has the most (stage {}; "
      "without copies and what transfers launch)\n{:<{}}  {:>8}  {:>12}  "
      "{:>14}\n",
      step.stage, "kernel", width, "launches", "MiB", "operations");
  for (const LaunchRow &row : rows)
    text +=
        fmt::format("{:<{}}  {:>8}  {:>12.2f}  {:>14.4g}\n", row.kernel, width,
                    row.launches, row.bytes / (1 << 20), row.operations);
  return text;
}

} // namespace rota
