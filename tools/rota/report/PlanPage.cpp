// SPDX-License-Identifier: Apache-2.0
#include "tools/rota/report/PlanPage.h"

#include "runtime/program/JsonText.h"
#include "tools/rota/report/Svg.h"
#include "tools/rota/report/TimelineChart.h"

#include <algorithm>
#include <cstdlib>
#include <fmt/format.h>
#include <string_view>

namespace rota::report {

namespace {

/// The value at a way such as "stages.0.bytes"; null where there is none.
const Json &valueAt(const Json &plan, const std::string &path) {
  static const Json null;
  const Json *value = &plan;
  for (size_t begin = 0; begin <= path.size();) {
    size_t end = std::min(path.find('.', begin), path.size());
    std::string name = path.substr(begin, end - begin);
    if (value->is_array()) {
      size_t index = std::strtoul(name.c_str(), nullptr, 10);
      if (index >= value->size())
        return null;
      value = &(*value)[index];
    } else {
      value = &member(*value, name);
    }
    begin = end + 1;
  }
  return *value;
}

/// A row of a summary: a number of the plan.
struct Fact {
  const char *title, *path;
  std::string (*format)(double);
};

/// Those that the plan has, in this order.
constexpr Fact kStepFacts[] = {
    {"step", "step_seconds", secondsText},
    {"tokens per second", "tokens_per_second", rateText},
    {"tokens per second and device", "tokens_per_second_per_device", rateText},
    {"MFU", "mfu", percentText},
    {"bubble", "bubble", percentText},
    {"bubble without a step barrier", "steady_bubble", percentText},
    {"operations of the busiest rank", "operations", shortNumber},
    {"operations of an even share", "even_share", shortNumber},
    {"memory of a rank at most", "bytes", byteText},
    {"measured step", "measured.step_seconds", secondsText}};
constexpr Fact kModelFacts[] = {
    {"parameters", "parameters", wholeText},
    {"operations per token", "flops_per_token", shortNumber},
    {"chunks", "chunks", wholeText},
    {"microbatches", "microbatches", wholeText},
    {"accumulation steps", "accumulation_steps", wholeText}};

template <typename Facts>
void addFacts(Table &table, const Json &plan, const Facts &facts) {
  for (const Fact &fact : facts)
    if (valueAt(plan, fact.path).is_number())
      table.addHtml(fact.title, dataOf(plan, fact.path, fact.format));
}

/// The policy that the plan has; empty where none is marked.
std::string chosenPolicy(const Json &plan) {
  for (const Json &policy : member(plan, "policies"))
    if (member(policy, "chosen") == true)
      return text(policy, "policy");
  return "";
}

std::string planSummary(const PlanPage &page) {
  const Json &plan = page.plan;
  Table step, model;
  addFacts(step, plan, kStepFacts);
  if (page.deviceBytes)
    step.addHtml("memory of a device", dataOf(plan, "device_bytes", byteText));
  model.add("model", text(plan, "model"));
  model.add("machine", text(plan, "machine"));
  model.add("schedule", text(plan, "schedule"));
  model.add("mesh", meshText(member(plan, "mesh")));
  model.add("rematerialization", chosenPolicy(plan));
  model.add("weights gathered", text(plan, "weight_gather"));
  addFacts(model, plan, kModelFacts);
  return "<h2>Summary</h2>\n<div class=\"grid\">\n<table>" + step.html +
         "</table>\n<table>" + model.html + "</table>\n</div>\n";
}

std::string planTimelineSection(const SimulatedPlan &simulated) {
  std::vector<TimelineRow> rows;
  for (const std::vector<TimedAction> &stage : simulated.stages) {
    TimelineRow row{fmt::format("stage {}", rows.size()), "", {}};
    for (const TimedAction &timed : stage)
      if (timed.span.end > timed.span.start)
        row.slices.push_back({toString(timed.action), timed.span.start,
                              timed.span.end, isCompute(timed.action.kind),
                              std::string_view(timed.stream) == "pair", ""});
    rows.push_back(std::move(row));
  }
  std::string picture = largeTimelineChart(std::move(rows));
  if (picture.empty())
    return "";
  return "<h2>Timeline</h2>\n<p>The ranks of a stage do the same. <span "
         "class=\"faint\">3B1 is the backward pass of chunk 3 on microbatch "
         "1.</span></p>\n<p>" +
         timelineLegend() + "</p>\n" + picture;
}

std::string joinedTexts(const Json &list) {
  std::string joined;
  for (const Json &each : list)
    if (each.is_string())
      joined += (joined.empty() ? "" : ", ") + each.get<std::string>();
  return joined;
}

/// Columns of the table of policies.
constexpr Fact kPolicyFacts[] = {{"peak", "peak_bytes", byteText},
                                 {"activations", "activation_bytes", byteText},
                                 {"offloaded", "host_bytes", byteText},
                                 {"recomputed", "recomputed", percentText},
                                 {"step", "step_seconds", secondsText}};

std::string policyRow(const Json &plan, size_t number) {
  const Json &policy = member(plan, "policies")[number];
  std::string path = fmt::format("policies.{}.", number);
  std::string name = escaped(text(policy, "policy"));
  if (member(policy, "chosen") == true)
    name = "<b>" + name + "</b>";
  std::string html = "<tr><th>" + name + "</th>";
  if (std::string error = text(policy, "error"); !error.empty())
    return html + "<td class=\"left\" colspan=\"6\">" + escaped(error) +
           "</td></tr>\n";
  for (const Fact &fact : kPolicyFacts)
    html += "<td>" + dataOf(plan, path + fact.path, fact.format) + "</td>";
  return html + "<td class=\"left\">" +
         escaped(joinedTexts(member(policy, "kept"))) + "</td></tr>\n";
}

std::string policySection(const Json &plan) {
  const Json &policies = member(plan, "policies");
  std::string rows;
  for (size_t i = 0; i < policies.size(); ++i)
    rows += policyRow(plan, i);
  if (rows.empty())
    return "";
  std::string titles;
  for (const Fact &fact : kPolicyFacts)
    titles += std::string("<th>") + fact.title + "</th>";
  return "<h2>Rematerialization</h2>\n<p>Each policy for all layers; bytes are "
         "those of the rank that needs most.</p>\n<div class=\"scroll\"><table "
         "class=\"many\">\n<tr><th>policy</th>" +
         titles + "<th class=\"left\">layers keep</th></tr>\n" + rows +
         "</table></div>\n";
}

} // namespace

std::string dataOf(const Json &plan, const std::string &path,
                   std::string (*format)(double)) {
  const Json &value = valueAt(plan, path);
  if (!value.is_number())
    return "-";
  return fmt::format("<data data-of=\"{}\" value=\"{}\">{}</data>", path,
                     jsonText(value), escaped(format(value.get<double>())));
}

std::string makePlanPage(const PlanPage &page) {
  const Json &plan = page.plan;
  std::string model = text(plan, "model");
  return htmlPage("Plan of " + (model.empty() ? "a model" : model),
                  planSummary(page) + planTimelineSection(page.simulated) +
                      planMemorySection(page) + planTransferSection(plan) +
                      searchSection(page.searched) + policySection(plan) +
                      "<details><summary>Memory by stage</summary>\n<pre>" +
                      escaped(page.text) + "</pre></details>\n");
}

} // namespace rota::report
