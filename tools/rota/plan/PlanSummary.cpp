// SPDX-License-Identifier: Apache-2.0
#include "tools/rota/plan/PlanSummary.h"

#include "runtime/options/Bytes.h"
#include "runtime/text/Text.h"
#include "runtime/train/step/StepBarrier.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace rota {
namespace {

std::optional<Campaign> campaignOf(const RunOptions &options, const Plan &plan,
                                   const Forecast &step) {
  return campaign(step, stateBytes(plan.program), options.campaign);
}

/// "5.2 % of the step waits for context, 1.0 % for data".
std::string exposedText(const Forecast &step) {
  std::string text;
  for (const AxisTransfers &sum : step.transfers)
    if (double share = sum.exposed / step.stepSeconds; share >= 0.0005)
      text += fmt::format("{}{:.1f} % for {}", text.empty() ? "" : ", ",
                          100 * share, sum.axes);
  return text.empty() ? "no transfer is exposed"
                      : "waits for transfers: " + text;
}

std::string memoryText(const RunOptions &options, const Forecast &step) {
  std::string text = "memory of a rank: " + bytesText(step.bytes);
  if (options.compiler.memory > 0)
    text += " of " + bytesText(options.compiler.memory);
  return text + "\n";
}

/// The share of the peak; also with all pairs of attention, where that is
/// another number.
std::string utilizationText(const Forecast &step) {
  std::string own = fmt::format("MFU {:.1f} %", 100 * step.mfu()),
              full = fmt::format("MFU {:.1f} %", 100 * step.fullMfu());
  if (full != own)
    own += ", or " + full.substr(4) + " with all pairs of attention";
  return own;
}

/// The assumed machine, where none is named.
std::string machineText(const RunOptions &options,
                        const mlir::rota::Machine &machine) {
  if (options.compiler.machine)
    return machine.name;
  const mlir::rota::NetworkLevel &network = machine.network.front();
  return fmt::format("{} machine ({:.0f} GFLOP/s, {:.0f} GB/s, {:.0f} us; "
                     "--machine names another)",
                     machine.name, machine.rowFlopsPerSecond / 1e9,
                     network.bytesPerSecond / 1e9, network.latency * 1e6);
}

std::string describeCampaign(const RunOptions &options, const Campaign &run) {
  const CampaignRequest &asked = options.campaign;
  std::string text;
  if (asked.tokens > 0)
    text += fmt::format("{:.3g} tokens: {:.1f} days, {} device hours",
                        asked.tokens, run.seconds / 86400,
                        grouped(static_cast<int64_t>(run.deviceHours + 0.5)));
  if (asked.price > 0)
    text += fmt::format(", which cost {}",
                        grouped(static_cast<int64_t>(run.cost + 0.5)));
  if (!text.empty())
    text += "\n";
  if (asked.hoursBetweenFailures > 0)
    text += fmt::format("a checkpoint takes {:.1f} s: best every {:.0f} s, "
                        "goodput {:.2f} %\n",
                        run.checkpointSeconds, run.interval, 100 * run.goodput);
  return text;
}

} // namespace

Forecast forecastOf(const RunOptions &options, const Plan &plan) {
  return forecast(
      plan, hasStepBarrier(plan.program, options.optimizer, options.skip));
}

std::string describeForecast(const RunOptions &options, const Plan &plan) {
  Forecast step = forecastOf(options, plan);
  std::string text = fmt::format(
      "{} x {}: a step of {} tokens takes {:.4g} s, {} tokens/s, {} a device\n"
      "{}: operations per token * tokens/s / ({} * {:.4g} TFLOP/s)\n"
      "{}\n",
      step.devices, machineText(options, plan.machine),
      grouped(static_cast<int64_t>(step.tokens)), step.stepSeconds,
      grouped(static_cast<int64_t>(step.tokensPerSecond())),
      grouped(static_cast<int64_t>(step.tokensPerSecond() /
                                   static_cast<double>(step.devices))),
      utilizationText(step), step.devices,
      step.peak / static_cast<double>(step.devices) / 1e12, exposedText(step));
  text += memoryText(options, step);
  if (auto run = campaignOf(options, plan, step))
    text += describeCampaign(options, *run);
  return text;
}

void addForecast(const RunOptions &options, const Plan &plan,
                 nlohmann::ordered_json &json) {
  Forecast step = forecastOf(options, plan);
  json["machine"] = step.machine;
  json["devices"] = step.devices;
  json["step_seconds"] = step.stepSeconds;
  json["step"] = {{"accumulation_steps", step.time.accumulationSteps},
                  {"timeline_seconds", step.time.timeline},
                  {"earlier_timeline_seconds", step.time.earlier},
                  {"exchange_seconds", step.time.exchange},
                  {"update_seconds", step.time.update},
                  {"compute_seconds", step.time.compute}};
  json["tokens"] = step.tokens;
  json["tokens_per_second"] = step.tokensPerSecond();
  json["mfu"] = step.mfu();
  json["mfu_all_pairs"] = step.fullMfu();
  json["bytes"] = step.bytes;
  json["device_bytes"] = options.compiler.memory;
  auto run = campaignOf(options, plan, step);
  if (!run)
    return;
  if (options.campaign.tokens > 0)
    json["run"] = {{"seconds", run->seconds},
                   {"device_hours", run->deviceHours},
                   {"cost", run->cost}};
  if (options.campaign.hoursBetweenFailures > 0)
    json["checkpoints"] = {{"seconds", run->checkpointSeconds},
                           {"interval_seconds", run->interval},
                           {"goodput", run->goodput}};
}

} // namespace rota
