// SPDX-License-Identifier: Apache-2.0
//
// Tables of the run's numbers and of its options.
#include "runtime/metrics/StepNumbers.h"
#include "runtime/text/Text.h"
#include "tools/rota/report/Html.h"
#include "tools/rota/report/Svg.h"
#include "tools/rota/report/Tables.h"

#include <fmt/format.h>

namespace rota::report {

namespace {

/// A number of a step, where `object` has that.
void addNumber(Table &table, const Json &object, StepNumber which) {
  if (auto value = number(object, keyOf(which)))
    table.add(infoOf(which).title, textOf(infoOf(which).format, *value));
}

/// The last step's number of that name.
std::optional<double> lastOf(const RunFolder &folder, const char *key) {
  for (auto step = folder.steps.rbegin(); step != folder.steps.rend(); ++step)
    if (auto value = number(step->second, key))
      return value;
  return std::nullopt;
}

/// The last step's number.
void addLast(Table &table, const RunFolder &folder, StepNumber which) {
  if (auto value = lastOf(folder, keyOf(which)))
    table.add(infoOf(which).title, textOf(infoOf(which).format, *value));
}

void addProgram(Table &table, const Json &run) {
  table.add("model", text(run, "model"));
  table.add("parameters", run, "parameters", wholeText);
  table.add("schedule", text(run, "schedule"));
  table.add("ranks", run, "ranks", wholeText);
  table.add("mesh", meshText(member(run, "mesh")));
  table.add("microbatches", run, "microbatches", wholeText);
  table.add("tokens per step", run, "tokens_per_step", wholeText);
  table.add("operations per token", run, "flops_per_token", shortNumber);
  table.add("device", text(run, "device"));
  table.add("data", text(run, "data"));
}

void addEnd(Table &table, const Json &end) {
  table.add("tokens", end, "tokens", wholeText);
  const Json &time = member(end, "time");
  table.add("time", time, "total", secondsText);
  table.add("of it in steps", time, "steps", secondsText);
  table.add("of it at the start", time, "start", secondsText);
  table.add("of it in validation", time, "validation", secondsText);
  table.add("goodput", end, "goodput", percentText);
  addNumber(table, end, StepNumber::TokensPerSecond);
  addNumber(table, end, StepNumber::Utilization);
  table.add("peak, operations per second", end, "peak_flops", shortNumber);
  addNumber(table, end, StepNumber::BubbleMeasured);
  addNumber(table, end, StepNumber::BubblePlanned);
  table.add("exposed communication", end, "exposed_share", percentText);
  table.add("peak memory of a rank, planned", end, "planned_peak_bytes",
            byteText);
  table.add("peak memory of a rank, reached", end, "reached_peak_bytes",
            byteText);
}

/// What rows of the summary count where it is not of all steps: the process of
/// a resumed run, or an earlier one than that of the last steps.
std::string processNote(const RunFolder &folder) {
  std::optional<ProcessSteps> made = stepsOfProcess(folder.summary);
  if (!made || folder.steps.empty())
    return "";
  bool isEarlier = made->last < double(folder.steps.rbegin()->first);
  if (made->before == 0 && !isEarlier)
    return "";
  std::string steps =
      made->count() > 1   ? fmt::format("made steps {:.0f} to {:.0f}",
                                        made->before + 1, made->last)
      : made->count() > 0 ? fmt::format("made step {:.0f}", made->last)
                          : "made no step";
  return fmt::format(
      "<p class=\"{}\">Tokens, times, transfers and reached bytes "
      "are those of the last process that ended, which {}.</p>\n",
      isEarlier ? "warn" : "faint", steps);
}

} // namespace

std::string summarySection(const RunFolder &folder) {
  Table program, end;
  addProgram(program, folder.run);
  if (!folder.steps.empty())
    end.add("steps", grouped(folder.steps.rbegin()->first));
  addLast(end, folder, StepNumber::Loss);
  addLast(end, folder, StepNumber::ValidationLoss);
  if (auto load = lastOf(folder, "expert_load_worst"))
    end.add("largest load of an expert",
            fmt::format("{:.2f} times the mean", *load));
  if (auto share = lastOf(folder, "expert_load_dropped_share"))
    end.add("dropped choices", fmt::format("{:.1f} %", 100.0 * *share));
  addLast(end, folder, StepNumber::SkippedSteps);
  if (folder.summary.is_null())
    addLast(end, folder, StepNumber::TokensPerSecond);
  addEnd(end, folder.summary);
  std::string html =
      "<h2>Summary</h2>\n" + processNote(folder) + "<div class=\"grid\">\n";
  for (const Table *table : {&end, &program})
    if (!table->html.empty())
      html += "<table>" + table->html + "</table>\n";
  return html + "</div>\n";
}

std::string optionSection(const RunFolder &folder) {
  const Json &options = member(folder.run, "options");
  if (!options.is_object())
    return "";
  std::string rows;
  for (const auto &[name, values] : options.items()) {
    std::string value;
    for (const Json &each : values)
      if (each.is_string())
        value += (value.empty() ? "" : ", ") + each.get<std::string>();
    if (!value.empty())
      rows += fmt::format("<tr><th>{}</th><td>{}</td></tr>\n", escaped(name),
                          escaped(value));
  }
  return "<details><summary>Options of the run</summary>\n<table>" + rows +
         "</table></details>\n";
}

} // namespace rota::report
