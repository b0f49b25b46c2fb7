// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/report/RunSummary.h"
#include "runtime/metrics/Utilization.h"
#include "runtime/text/Text.h"
#include "runtime/train/report/Report.h"

#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

using nlohmann::ordered_json;

namespace rota {

double RunSummary::tokensPerSecond() const {
  return time.steps > 0.0 ? static_cast<double>(tokens) / time.steps : 0.0;
}

std::optional<double> RunSummary::utilization(const Program &program) const {
  if (!peakFlops || program.flopsPerToken <= 0.0)
    return std::nullopt;
  return modelFlopsUtilization(program, tokensPerSecond(), *peakFlops);
}

double RunSummary::exposedSeconds() const {
  if (ranks.empty())
    return 0.0;
  double sum = 0.0;
  for (const RankReport &rank : ranks) {
    sum += rank.inTasks + rank.stepEnd.waited;
    for (const TransferTimes &times : rank.transfers)
      sum += times.waited;
  }
  return sum / static_cast<double>(ranks.size());
}

double RunSummary::exposedShare() const {
  return time.steps > 0.0 ? exposedSeconds() / time.steps : 0.0;
}

int64_t RunSummary::plannedBytes() const {
  int64_t most = 0;
  for (const RankReport &rank : ranks)
    most = std::max(most, rank.planned);
  return most;
}

int64_t RunSummary::reachedBytes() const {
  int64_t most = 0;
  for (const RankReport &rank : ranks)
    most = std::max(most, rank.reached);
  return most;
}

/// A number, or null where it is not known.
static ordered_json optional(const std::optional<double> &value) {
  return value ? ordered_json(*value) : ordered_json(nullptr);
}

static ordered_json transfersJson(const TransferTimes &times) {
  return {{"count", times.count},
          {"seconds", times.seconds},
          {"waited", times.waited},
          {"hidden", times.seconds > 0 ? ordered_json(times.hidden())
                                       : ordered_json(nullptr)}};
}

/// Times of each kind of message and transfer that there was, all ranks
/// together.
static ordered_json kindsJson(const RunSummary &summary) {
  ordered_json kinds = ordered_json::object();
  for (int k = 0; k < kActionKindCount; ++k)
    if (TransferTimes times = sumOf(summary.ranks, ActionKind(k));
        times.count > 0)
      kinds[toString(ActionKind(k))] = transfersJson(times);
  return kinds;
}

static ordered_json ranksJson(const std::vector<RankReport> &ranks) {
  ordered_json rows = ordered_json::array();
  for (const RankReport &rank : ranks)
    rows.push_back({{"planned_bytes", rank.planned},
                    {"reached_bytes", rank.reached},
                    {"resident_bytes", rank.resident},
                    {"offloaded_bytes", rank.host}});
  return rows;
}

ordered_json summaryJson(const Program &program, const StepReport &p,
                         const RunSummary &summary) {
  int64_t peak = 0;
  double inTasks = 0.0;
  TransferTimes stepEnd;
  for (const RankReport &rank : summary.ranks) {
    peak = std::max(peak, rank.peak);
    inTasks += rank.inTasks;
    stepEnd += rank.stepEnd;
  }
  const TimeUse &time = summary.time;
  ordered_json parts = nullptr;
  for (const LossPart &part : p.lossParts)
    parts[part.name] = part.value;
  return {
      {"event", "end"},
      {"steps", p.step},
      {"steps_before", summary.stepsBefore},
      {"replayed_steps", p.replayed},
      {"step_launches", p.launches},
      {keyOf(StepNumber::Loss), p.loss},
      {"loss_parts", parts},
      {keyOf(StepNumber::ValidationLoss), optional(p.validationLoss)},
      {"best_validation_loss",
       p.best ? ordered_json(p.best->loss) : ordered_json(nullptr)},
      {"reached_target", p.reachedTarget},
      {"early_end", nameOf(p.earlyEnd)},
      {keyOf(StepNumber::SkippedSteps), p.skippedSteps},
      {keyOf(StepNumber::RolledBackSteps), p.rolledBackSteps},
      {keyOf(StepNumber::Seconds), p.seconds},
      {"tokens", summary.tokens},
      {keyOf(StepNumber::TokensPerSecond), summary.tokensPerSecond()},
      {keyOf(StepNumber::Utilization), optional(summary.utilization(program))},
      {"peak_flops", optional(summary.peakFlops)},
      {"goodput", time.goodput()},
      {"time",
       {{"total", time.total},
        {"start", time.start},
        {"steps", time.steps},
        {"validation", time.validation},
        {"checkpoints", time.checkpoints}}},
      {keyOf(StepNumber::BubbleMeasured), p.bubble},
      {keyOf(StepNumber::BubblePlanned), p.plannedBubble},
      {"unshard", transfersJson(sumOf(summary.ranks, ActionKind::Unshard))},
      {"reduce_grad",
       transfersJson(sumOf(summary.ranks, ActionKind::ReduceGrad))},
      {"transfers", kindsJson(summary)},
      {"in_task_seconds", inTasks},
      {"step_end", transfersJson(stepEnd)},
      {keyOf(StepNumber::ExposedSeconds), summary.exposedSeconds()},
      {"exposed_share", summary.exposedShare()},
      {"planned_peak_bytes", summary.plannedBytes()},
      {"reached_peak_bytes", summary.reachedBytes()},
      {"peak_resident_bytes", peak},
      {"ranks", ranksJson(summary.ranks)}};
}

std::string summaryText(const Program &program, const RunSummary &summary) {
  const TimeUse &time = summary.time;
  auto whole = [](double value) {
    return grouped(static_cast<int64_t>(value));
  };
  std::string text = fmt::format(
      "{} tokens, {} a second; goodput {:.1f} %: of {:.1f} s, {:.1f} s in "
      "steps, {:.1f} s at the start, {:.1f} s in validation, {:.1f} s in "
      "checkpoints\n",
      grouped(summary.tokens), whole(summary.tokensPerSecond()),
      100.0 * time.goodput(), time.total, time.steps, time.start,
      time.validation, time.checkpoints);
  if (std::optional<double> mfu = summary.utilization(program))
    text += fmt::format("MFU {:.1f} %: {} operations per token x {} tokens/s / "
                        "{:.4g} operations/s\n",
                        100.0 * *mfu, whole(program.flopsPerToken),
                        whole(summary.tokensPerSecond()), *summary.peakFlops);
  text += fmt::format("exposed communication: {:.1f} % of the steps' time; "
                      "peak memory of a rank: {} bytes planned, {} reached\n",
                      100.0 * summary.exposedShare(),
                      grouped(summary.plannedBytes()),
                      grouped(summary.reachedBytes()));
  return text;
}

} // namespace rota
