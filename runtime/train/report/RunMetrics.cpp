// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/report/RunMetrics.h"
#include "runtime/metrics/RunDescription.h"
#include "runtime/metrics/Utilization.h"
#include "runtime/program/JsonText.h"
#include "runtime/train/step/Gather.h"
#include "runtime/train/step/StepBarrier.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace rota {

/// Most runs that a trace keeps.
static constexpr int64_t kTracedRuns = 20;
/// The steps in the trace of a folder, and the most actions of all ranks in it.
static constexpr int64_t kTracedSteps = 3, kTracedActions = 30000;

std::optional<double> peakFlops(const Rank &rank, const Options &options) {
  if (options.metrics.peakFlops > 0.0)
    return options.metrics.peakFlops;
  // Several processes under MPI may share a GPU.
  if (options.ranks == RankKind::Mpi)
    return std::nullopt;
  std::optional<double> one = knownPeakFlops(
      rank.device().name(), arithmeticOf(rank.program(), options.allowTf32));
  if (one && options.ranks == RankKind::Nccl)
    *one *= static_cast<double>(rank.everyone().ranks.size());
  return one;
}

/// Steps in the trace of a folder.
static int64_t folderSteps(const Program &program) {
  int64_t actions = 0, ranks = 1;
  for (const Stage &stage : program.stages)
    actions += static_cast<int64_t>(stage.actions.size());
  for (const MeshAxis &axis : program.mesh)
    ranks *= axis.size;
  int64_t all = actions * ranks / static_cast<int64_t>(program.stages.size());
  return std::clamp<int64_t>(kTracedActions / std::max<int64_t>(1, all), 1,
                             kTracedSteps);
}

int64_t tracedRuns(const Program &program, const Options &options) {
  if (!options.trace.empty())
    return kTracedRuns;
  return options.metrics.folder.empty() ? 0 : folderSteps(program);
}

RunMetrics::RunMetrics(Rank &rank, Executor &executor, const Options &options,
                       Report &report)
    : rank(rank), executor(executor), options(options), report(report),
      tracedSteps(folderSteps(rank.program())) {
  if (rank.number() == 0 && !options.metrics.folder.empty())
    folder.emplace(options.metrics.folder);
}

void RunMetrics::note(const std::string &warning) {
  if (!warning.empty())
    report.note(warning);
}

void RunMetrics::begin(const std::string &data, int64_t tokensPerStep) {
  if (!folder)
    return;
  Options values = options;
  std::vector<Option> table = trainOptions(values);
  note(folder->replace(
      metricsfiles::run,
      describeRun(
          rank.program(),
          {rank.device().name(), data, tokensPerStep, peakFlops(rank, options),
           plannedBubble(rank.program(), options),
           hasStepBarrier(rank.program(), options.optimizer, options.skip),
           table})));
}

static Metric metricOf(StepNumber number, double value) {
  return {keyOf(number), infoOf(number).tag, value};
}

/// The hidden shares of the timeline's gathers and of its reductions, those for
/// updates among them, of all ranks so far, and the
/// seconds of a rank so far in which communication was exposed.
void RunMetrics::addTransfers(std::vector<Metric> &metrics) const {
  constexpr std::array<ActionKind, 2> kinds[] = {
      {ActionKind::Unshard, ActionKind::Refresh},
      {ActionKind::ReduceGrad, ActionKind::SumGrad}};
  std::vector<double> own = {rank.inTaskSeconds() + rank.stepEndTimes().waited};
  for (const TransferTimes &times : executor.times().transfers())
    own[0] += times.waited;
  for (const std::array<ActionKind, 2> &pair : kinds) {
    TransferTimes times;
    for (ActionKind kind : pair)
      times += executor.times().transfers()[static_cast<size_t>(kind)];
    own.insert(own.end(), {times.seconds, times.waited});
  }
  std::vector<double> all = gatherNumbers(rank, rank.everyone(), own), sum(own);
  std::fill(sum.begin(), sum.end(), 0.0);
  for (size_t i = 0; i < all.size(); ++i)
    sum[i % sum.size()] += all[i];
  if (sum[1] > 0.0)
    metrics.push_back(metricOf(StepNumber::HiddenGathers, 1 - sum[2] / sum[1]));
  if (sum[3] > 0.0)
    metrics.push_back(
        metricOf(StepNumber::HiddenReductions, 1 - sum[4] / sum[3]));
  metrics.push_back(
      metricOf(StepNumber::ExposedSeconds,
               sum[0] / static_cast<double>(rank.everyone().ranks.size())));
}

/// The largest of all ranks. Nothing is written for the first time after the
/// first step, so the reached bytes are read once.
void RunMetrics::addMemory(std::vector<Metric> &metrics) {
  if (!memory)
    memory = gatherNumbers(rank, rank.everyone(),
                           {static_cast<double>(rank.arena().bytes()),
                            static_cast<double>(rank.arena().highWater())});
  double planned = 0.0, reached = 0.0;
  for (size_t i = 0; i < memory->size(); i += 2) {
    planned = std::max(planned, (*memory)[i]);
    reached = std::max(reached, (*memory)[i + 1]);
  }
  metrics.push_back(metricOf(StepNumber::PlannedBytes, planned));
  metrics.push_back(metricOf(StepNumber::ReachedBytes, reached));
}

/// "expert_load_worst" and so on.
static void addObserved(const ObservedStep &observed,
                        std::vector<Metric> &metrics) {
  auto add = [&](const std::string &what, double value) {
    metrics.push_back(
        {observed.name + "_" + what, observed.name + "/" + what, value});
  };
  add("worst", observed.worst);
  add("mean", observed.mean);
  if (!observed.dropped)
    return;
  add("dropped", static_cast<double>(observed.dropped->count));
  add("dropped_share", observed.dropped->share);
}

/// The numbers of a step of rank 0 that the run has and that are known.
void RunMetrics::addNumbers(const StepReport &p, bool isKept,
                            std::vector<Metric> &metrics) const {
  auto isOfTheRun = [&](StepNumber number) {
    switch (number) {
    case StepNumber::CheckpointStall:
      return !options.checkpoints.folder.empty();
    case StepNumber::SkippedSteps:
      return options.skip.isOn();
    case StepNumber::RolledBackSteps:
      return options.optimizer.postValidate;
    case StepNumber::BubbleMeasured:
    case StepNumber::BubblePlanned:
      return isKept;
    default:
      return true;
    }
  };
  for (size_t i = 0; i < std::size(kStepNumbers); ++i) {
    std::optional<double> value = p.valueOf(StepNumber(i));
    if (value && kStepNumbers[i].tag && isOfTheRun(StepNumber(i)))
      metrics.push_back(metricOf(StepNumber(i), *value));
  }
}

void RunMetrics::step(const StepReport &p, bool isKept, bool last) {
  if (options.metrics.folder.empty())
    return;
  std::vector<Metric> metrics;
  addNumbers(p, isKept, metrics);
  for (const LossPart &part : p.lossParts)
    metrics.push_back({"loss_" + part.name, "loss/" + part.name, part.value});
  for (const ObservedStep &observed : p.observed)
    addObserved(observed, metrics);
  if (isKept) {
    addTransfers(metrics);
    addMemory(metrics);
  }
  if (folder)
    note(folder->addStep(p.step, metrics));
  if (!isTraced && (last || p.step - before >= tracedSteps)) {
    isTraced = true;
    std::string trace = gatherTrace(rank, executor);
    if (folder)
      note(folder->replace(metricsfiles::trace, trace));
  }
}

void RunMetrics::sample(const Sample &sample) {
  if (folder)
    note(folder->addSample(jsonText(sampleJson(sample))));
}

void RunMetrics::end(const StepReport &progress, const RunSummary &summary) {
  if (folder)
    note(folder->replace(
        metricsfiles::summary,
        jsonText(summaryJson(rank.program(), progress, summary), 1) + "\n"));
}

} // namespace rota
