// SPDX-License-Identifier: Apache-2.0
#include "tools/rota/plan/PlanSummary.h"

#include "runtime/options/Bytes.h"
#include "runtime/text/Text.h"
#include "runtime/train/step/StepBarrier.h"
#include "tools/rota/report/Html.h"
#include "tools/rota/report/Svg.h"

#include <cmath>
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

/// A rate, or the first digits of a huge number.
std::string amountText(double amount) {
  return amount < 1e15 ? report::rateText(amount)
                       : fmt::format("{:.4g}", amount);
}

} // namespace

std::string describeCampaign(const CampaignRequest &asked,
                             const Campaign &run) {
  std::string text;
  if (asked.tokens > 0)
    text += fmt::format("{:.3g} token{}: ", asked.tokens,
                        asked.tokens == 1 ? "" : "s");
  if (asked.tokens > 0 && !std::isfinite(run.seconds))
    text += "never, as failures leave no time that trains";
  else if (asked.tokens > 0)
    text += fmt::format("{}, {} device hours", report::secondsText(run.seconds),
                        amountText(run.deviceHours));
  if (asked.price > 0 && std::isfinite(run.cost))
    text += ", which cost " + amountText(run.cost);
  if (!text.empty())
    text += "\n";
  if (asked.hoursBetweenFailures > 0)
    text += fmt::format("a checkpoint takes {}: best every {}, "
                        "goodput {:.2f} %\n",
                        report::secondsText(run.checkpointSeconds),
                        report::secondsText(run.interval), 100 * run.goodput);
  return text;
}

nlohmann::ordered_json campaignJson(const Campaign &run) {
  return {{"seconds", run.seconds},
          {"device_hours", run.deviceHours},
          {"cost", run.cost}};
}

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
      report::rateText(step.tokensPerSecond()),
      report::rateText(step.tokensPerSecondAndDevice()), utilizationText(step),
      step.devices, step.peak / static_cast<double>(step.devices) / 1e12,
      exposedText(step));
  text += memoryText(options, step);
  if (auto run = campaignOf(options, plan, step))
    text += describeCampaign(options.campaign, *run);
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
  json["tokens_per_second_per_device"] = step.tokensPerSecondAndDevice();
  json["peak_flops"] = step.peak;
  json["mfu"] = step.mfu();
  json["mfu_all_pairs"] = step.fullMfu();
  json["bytes"] = step.bytes;
  json["device_bytes"] = options.compiler.memory;
  auto run = campaignOf(options, plan, step);
  if (!run)
    return;
  if (options.campaign.tokens > 0)
    json["run"] = campaignJson(*run);
  if (options.campaign.hoursBetweenFailures > 0)
    json["checkpoints"] = {{"seconds", run->checkpointSeconds},
                           {"interval_seconds", run->interval},
                           {"goodput", run->goodput}};
}

} // namespace rota
