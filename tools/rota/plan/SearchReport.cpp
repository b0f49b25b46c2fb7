// SPDX-License-Identifier: Apache-2.0
#include "tools/rota/plan/SearchReport.h"

#include "runtime/options/Bytes.h"
#include "runtime/text/Text.h"
#include "tools/rota/RunFile.h"
#include "tools/rota/plan/PlanSummary.h"

#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

using nlohmann::ordered_json;

namespace rota {
namespace {

constexpr double kNotable = 5e-4; // share of a step that is printed

struct NamedPart {
  const char *name, *key;
  double StepParts::*seconds;
};
constexpr NamedPart kParts[] = {
    {"operations at the peak", "peak", &StepParts::peak},
    {"product efficiency", "inefficiency", &StepParts::inefficiency},
    {"recomputation", "recomputation", &StepParts::recomputation},
    {"exposed transfers", "exposed", &StepParts::exposed},
    {"bubble", "bubble", &StepParts::bubble},
    {"update", "update", &StepParts::update}};

std::string seconds(double value) {
  return value < 1 ? fmt::format("{:.4g} ms", 1e3 * value)
                   : fmt::format("{:.4g} s", value);
}

double tokensOf(const PlanSearchReport &report) {
  return double(report.options.batchSize) *
         double(report.options.compiler.build.sequenceLength);
}

/// What the run that is asked about takes with a plan.
std::optional<Campaign> campaignOf(const PlanSearchReport &report,
                                   const PlannedCandidate &plan) {
  Forecast step;
  step.devices = report.options.devices;
  step.stepSeconds = plan.seconds;
  step.tokens = tokensOf(report);
  return campaign(step, /*stateBytes=*/0, report.options.campaign);
}

/// "bubble +1.2 %, recomputation -0.4 %": the largest differences first, as
/// shares of the first one's step.
std::string differences(const PlannedCandidate &first,
                        const PlannedCandidate &other) {
  std::vector<std::pair<double, const char *>> parts;
  for (const NamedPart &part : kParts) {
    double share =
        (other.parts.*part.seconds - first.parts.*part.seconds) / first.seconds;
    if (std::abs(share) >= kNotable)
      parts.emplace_back(share, part.name);
  }
  std::ranges::sort(parts, std::greater<>(),
                    [](const auto &part) { return std::abs(part.first); });
  std::string text;
  for (const auto &[share, name] : parts)
    text += fmt::format("{}{} {:+.1f} %", text.empty() ? "" : ", ", name,
                        100 * share);
  return text.empty() ? "the same times" : text;
}

std::string describeParts(const PlannedCandidate &plan) {
  std::string text;
  for (const NamedPart &part : kParts)
    if (double share = plan.parts.*part.seconds / plan.seconds;
        share >= kNotable)
      text += fmt::format("{}{} {:.1f} %", text.empty() ? "" : ", ", part.name,
                          100 * share);
  return text;
}

std::string describeBest(const PlanSearchReport &report) {
  std::string text;
  const std::vector<PlannedCandidate> &best = report.answer.best;
  for (size_t i = 0; i < best.size(); ++i) {
    const PlannedCandidate &plan = best[i];
    text += fmt::format(
        "{:>3}  {:>9}  {:>9}  {}\n", i + 1, seconds(plan.seconds),
        bytesText(plan.bytes, /*digits=*/2), flagsOf(plan.candidate));
    text += i == 0 ? fmt::format("     of its step: {}\n", describeParts(plan))
                   : fmt::format("     {:+.2f} %: {}\n",
                                 100 * (plan.seconds / best[0].seconds - 1),
                                 differences(best[0], plan));
  }
  return text;
}

std::string describeFront(const std::vector<PlannedCandidate> &front) {
  std::string text = "\nmemory against time: no planned one is both shorter "
                     "and smaller\n";
  for (const PlannedCandidate &plan : front)
    text += fmt::format("     {:>9}  {:>9}  {}\n", seconds(plan.seconds),
                        bytesText(plan.bytes, /*digits=*/2),
                        flagsOf(plan.candidate));
  return text;
}

std::string number(size_t count) { return grouped(int64_t(count)); }

/// The candidates that were not planned, and why.
std::string describeLeftOut(const PlanSearchReport &report) {
  const SearchCounts &counts = report.answer.counts;
  std::string text =
      fmt::format("\n{} with {} of layers, in {:.1f} s: {} planned whole\n",
                  counted(int64_t(counts.candidates), "candidate"),
                  counted(int64_t(counts.divisions), "division"),
                  report.answer.seconds, number(counts.planned));
  auto add = [&](size_t count, const std::string &why) {
    if (count > 0)
      text += fmt::format("  {:>11}  {}\n", number(count), why);
  };
  add(counts.beyondMemory,
      "need more memory by its bound: weights, states, and the activations "
      "that their timeline holds");
  add(counts.slower,
      fmt::format("are slower than number {} by the bound of time: their work "
                  "and the bubble of their timeline",
                  report.answer.best.size()));
  add(counts.unlikely, "are slower by their estimates, and not by a bound");
  add(counts.overMemory, "were planned and need more memory");
  add(counts.unplannable,
      "have no plan" + (report.answer.refusal.empty()
                            ? std::string()
                            : ": " + report.answer.refusal));
  add(counts.unlikelyDivisions,
      "divisions of layers were left out as less likely ones");
  if (report.answer.isCut)
    text += "the time was over: another search may find more\n";
  return text;
}

/// How far the best step is from the least one.
std::string describeBound(const SearchAnswer &answer) {
  double best = answer.best.front().seconds;
  return fmt::format("the best step is {:.1f} % longer than {}, the work of "
                     "the cheapest division without bubble, recomputation and "
                     "transfers beside it\n",
                     100 * (best / answer.leastStep - 1),
                     seconds(answer.leastStep));
}

ordered_json planJson(const PlanSearchReport &report,
                      const PlannedCandidate &plan) {
  ordered_json parts = ordered_json::object();
  for (const NamedPart &part : kParts)
    parts[part.key] = plan.parts.*part.seconds;
  ordered_json json = {
      {"step_seconds", plan.seconds},
      {"tokens_per_second", tokensOf(report) / plan.seconds},
      {"bytes", plan.bytes},
      {"parts", parts},
      {"least_seconds", plan.leastSeconds},
      {"least_bytes", int64_t(plan.leastBytes)},
      {"run", runFile(report.options, settingsOf(plan.candidate))}};
  if (auto whole = campaignOf(report, plan))
    json["whole_run"] = campaignJson(*whole);
  return json;
}

ordered_json plansJson(const PlanSearchReport &report,
                       const std::vector<PlannedCandidate> &plans) {
  ordered_json list = ordered_json::array();
  for (const PlannedCandidate &plan : plans)
    list.push_back(planJson(report, plan));
  return list;
}

} // namespace

std::string describeSearch(const PlanSearchReport &report) {
  const RunOptions &options = report.options;
  const PlannedCandidate &best = report.answer.best.front();
  std::string memory = options.compiler.memoryText;
  auto whole = campaignOf(report, best);
  return fmt::format("{} on {}, {} of {} tokens in a step{}\n"
                     "{:.0f} tokens/s, {:.0f} a device\n{}\n",
                     options.compiler.model, counted(options.devices, "device"),
                     counted(options.batchSize, "sequence"),
                     grouped(options.compiler.build.sequenceLength),
                     memory.empty() ? "" : ", " + memory + " a rank",
                     tokensOf(report) / best.seconds,
                     tokensOf(report) / best.seconds / double(options.devices),
                     whole ? describeCampaign(options.campaign, *whole) : "") +
         describeBest(report) + describeFront(report.answer.front) +
         describeLeftOut(report) + describeBound(report.answer);
}

ordered_json searchJson(const PlanSearchReport &report) {
  const SearchAnswer &answer = report.answer;
  const SearchCounts &counts = answer.counts;
  ordered_json work = ordered_json::object();
  for (const auto &[name, seconds] : answer.workSeconds)
    work[name] = seconds;
  return {{"devices", report.options.devices},
          {"best", plansJson(report, answer.best)},
          {"front", plansJson(report, answer.front)},
          {"least_step_seconds", answer.leastStep},
          {"left_out",
           {{"memory_bound", counts.beyondMemory},
            {"time_bound", counts.slower},
            {"estimate", counts.unlikely},
            {"memory", counts.overMemory},
            {"no_plan", counts.unplannable}}},
          {"candidates", counts.candidates},
          {"planned", counts.planned},
          {"divisions", counts.divisions},
          {"unlikely_divisions", counts.unlikelyDivisions},
          {"is_cut", answer.isCut},
          {"search_seconds", answer.seconds},
          {"work_seconds", work}};
}

} // namespace rota
