// SPDX-License-Identifier: Apache-2.0
#include "tools/rota/report/Page.h"

#include "runtime/metrics/StepNumbers.h"

#include "tools/rota/report/Html.h"
#include "tools/rota/report/Svg.h"
#include "tools/rota/report/Tables.h"
#include "tools/rota/report/Timeline.h"

#include <array>
#include <ctime>
#include <fmt/format.h>

namespace rota::report {

namespace {

struct NumberLine {
  const char *name, *key;
  bool hasMarks = false;
};

NumberLine lineOf(StepNumber number) {
  return {infoOf(number).title, keyOf(number)};
}

Series seriesOf(const RunFolder &folder, const NumberLine &line,
                size_t colour) {
  Series series{line.name, fmt::format("s{}", colour), {}, line.hasMarks};
  for (const auto &[step, numbers] : folder.steps)
    if (auto value = number(numbers, line.key))
      series.points.emplace_back(static_cast<double>(step), *value);
  return series;
}

std::string chartOf(const RunFolder &folder, const ChartText &text,
                    const std::vector<NumberLine> &lines) {
  std::vector<Series> series;
  for (const NumberLine &line : lines)
    series.push_back(seriesOf(folder, line, series.size() + 1));
  std::string chart = lineChart(text, series);
  return chart.empty() ? "" : "<div class=\"card\">" + chart + "</div>\n";
}

std::string chartSection(const RunFolder &folder) {
  std::string charts =
      chartOf(folder, {"Loss", ""},
              {{"training", keyOf(StepNumber::Loss)},
               {"validation", keyOf(StepNumber::ValidationLoss),
                /*hasMarks=*/true}}) +
      chartOf(folder, {"Throughput", infoOf(StepNumber::TokensPerSecond).title},
              {{"throughput", keyOf(StepNumber::TokensPerSecond)}}) +
      chartOf(folder, {"Learning rate", ""},
              {lineOf(StepNumber::LearningRate)}) +
      chartOf(folder, {"Gradient norm", "before clipping"},
              {lineOf(StepNumber::GradientNorm)}) +
      chartOf(folder, {"Load of experts", "the largest over the mean"},
              {{"worst layer", "expert_load_worst"},
               {"mean of layers", "expert_load_mean"}}) +
      chartOf(folder, {"Dropped choices of experts", "", true},
              {{"dropped", "expert_load_dropped_share"}}) +
      chartOf(folder, {"Bubble", "", true},
              {{"measured", keyOf(StepNumber::BubbleMeasured)},
               {"planned", keyOf(StepNumber::BubblePlanned)}}) +
      chartOf(folder, {"Hidden share of transfers", "", true},
              {{"gathers", keyOf(StepNumber::HiddenGathers)},
               {"reductions", keyOf(StepNumber::HiddenReductions)}}) +
      chartOf(folder, {"MFU", "", true}, {lineOf(StepNumber::Utilization)});
  return charts.empty() ? ""
                        : "<h2>Progress</h2>\n<div class=\"grid\">\n" + charts +
                              "</div>\n";
}

std::string dateText(const Json &run) {
  auto started = number(run, "started");
  if (!started)
    return "";
  auto time = static_cast<std::time_t>(*started);
  std::tm parts = {};
  std::array<char, 64> text = {};
  if (!gmtime_r(&time, &parts) ||
      !std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M UTC", &parts))
    return "";
  return std::string("begun ") + text.data();
}

std::string planSection(const Json &run) {
  std::string plan = text(run, "timeline") + "\n" + text(run, "plan");
  if (plan.size() < 2)
    return "";
  return "<details><summary>Plan</summary>\n<pre>" + escaped(plan) +
         "</pre></details>\n";
}

} // namespace

std::string makePage(const RunFolder &folder) {
  std::string model = text(folder.run, "model");
  std::string title = model.empty() ? "training run" : model;
  std::string notes;
  for (const std::string &note : folder.notes)
    notes += "<p class=\"warn\">" + escaped(note) + "</p>\n";
  return htmlPage(title, "<p class=\"faint\">" + escaped(dateText(folder.run)) +
                             "</p>\n" + notes + summarySection(folder) +
                             chartSection(folder) + timelineSection(folder) +
                             memorySection(folder) + transferSection(folder) +
                             optionSection(folder) + planSection(folder.run));
}

} // namespace rota::report
