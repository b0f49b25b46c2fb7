// SPDX-License-Identifier: Apache-2.0
#include "tools/rota/plan/PlanExcess.h"

#include "lowering/memory/MemoryPlan.h"
#include "runtime/metrics/RunDescription.h"
#include "runtime/options/Bytes.h"
#include "runtime/program/JsonText.h"
#include "runtime/program/RuntimeMemory.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

using nlohmann::ordered_json;

namespace rota {
namespace {

constexpr size_t kMostUses = 8; // lines of the table of uses

/// "1.4 % more time".
std::string changeText(double value, double base, const char *noun) {
  double percent = base > 0 ? 100 * (value / base - 1) : 0;
  if (std::abs(percent) < 0.05)
    return fmt::format("as {} {}",
                       std::string(noun) == "time" ? "much" : "many", noun);
  return fmt::format("{:.1f} % {} {}", std::abs(percent),
                     percent > 0    ? "more"
                     : *noun == 't' ? "less"
                                    : "fewer",
                     noun);
}

/// "--remat minimal --shard-optimizer".
std::string settingsText(const std::vector<Setting> &settings) {
  std::string text;
  for (const Setting &setting : settings)
    text += fmt::format("{}{}--{}{}{}", text.empty() ? "" : " ",
                        setting.isDropped ? "without " : "", setting.option,
                        setting.value.empty() ? "" : " ", setting.value);
  return text;
}

std::string describeUses(const WhatFits &excess) {
  std::string text =
      fmt::format("largest uses of a rank of stage {}, which takes {}\n",
                  excess.stage, bytesText(excess.asked.bytes));
  for (size_t i = 0; i < std::min(kMostUses, excess.uses.size()); ++i) {
    const NamedUse &use = excess.uses[i];
    text += fmt::format("  {:>10}  {:>5.1f} %  {}{}\n", bytesText(use.bytes),
                        100.0 * double(use.bytes) / double(excess.asked.bytes),
                        use.name,
                        use.count > 1 ? fmt::format(" (x {})", use.count) : "");
  }
  return text;
}

std::string describeAlternatives(const WhatFits &excess,
                                 const std::string &memory, int64_t bound) {
  size_t width = 0;
  for (const Alternative &one : excess.fitting)
    width = std::max(width, settingsText(one.settings).size());
  auto line = [&](const Alternative &one) {
    return fmt::format(
        "  {:<{}}  {:>9}, {}, {}{}", settingsText(one.settings), width,
        bytesText(one.bytes),
        changeText(one.seconds, excess.asked.seconds, "time"),
        changeText(one.operations, excess.asked.operations, "operations"),
        one.hostBytes > 0
            ? fmt::format(", {} in host memory", bytesText(one.hostBytes))
            : "");
  };
  if (excess.fitting.empty())
    return fmt::format(
        "nothing that was tried fits {}{}\n", memory,
        excess.nearest ? fmt::format("; nearest, {} too many:\n{}",
                                     bytesText(excess.nearest->bytes - bound),
                                     line(*excess.nearest))
                       : "");
  std::string text = fmt::format(
      "what fits {}: bytes of the rank that needs most; time and operations of "
      "a step against those of this plan\n",
      memory);
  for (const Alternative &one : excess.fitting)
    text += line(one) + "\n";
  return text;
}

ordered_json alternativeJson(const Alternative &one) {
  ordered_json options = ordered_json::object();
  for (const Setting &setting : one.settings)
    if (setting.value.empty())
      options[setting.option] = !setting.isDropped;
    else
      options[setting.option] = setting.value;
  return {{"options", options},
          {"bytes", one.bytes},
          {"host_bytes", one.hostBytes},
          {"step_seconds", one.seconds},
          {"operations", one.operations}};
}

} // namespace

std::string describeExcess(const WhatFits &excess, const RunOptions &options) {
  const Program &program = excess.plan.program;
  return memory::describePlan(program) +
         memory::describeExcess(program, options.compiler.memory) + "\n" +
         describeUses(excess) + "\n" +
         describeAlternatives(excess, options.compiler.memoryText,
                              options.compiler.memory);
}

ordered_json excessJson(const WhatFits &excess, const RunOptions &options) {
  const Program &program = excess.plan.program;
  ordered_json stages = ordered_json::array(), uses = ordered_json::array(),
               fits = ordered_json::array();
  for (size_t stage = 0; stage < program.stages.size(); ++stage) {
    int64_t bytes = deviceBytes(program, stage);
    stages.push_back({{"bytes", bytes},
                      {"excess_bytes",
                       std::max<int64_t>(bytes - options.compiler.memory, 0)},
                      {"uses", usesJson(program.stages[stage])}});
  }
  for (const NamedUse &use : excess.uses)
    uses.push_back({{"use", use.use},
                    {"name", use.name},
                    {"count", use.count},
                    {"bytes", use.bytes}});
  for (const Alternative &one : excess.fitting)
    fits.push_back(alternativeJson(one));
  ordered_json json = {{"error", "memory"},
                       {"memory_bytes", options.compiler.memory},
                       {"stages", stages},
                       {"largest_stage", excess.stage},
                       {"largest_uses", uses},
                       {"step_seconds", excess.asked.seconds},
                       {"operations", excess.asked.operations},
                       {"fits", fits}};
  if (excess.nearest)
    json["nearest"] = alternativeJson(*excess.nearest);
  return json;
}

void printExcess(const PlanRequest &request, const RunOptions &options) {
  std::string error;
  std::optional<WhatFits> excess = whatFits(request, error);
  if (excess)
    fmt::print("{}", options.json
                         ? jsonText(excessJson(*excess, options), 2) + "\n"
                         : describeExcess(*excess, options));
}

} // namespace rota
