// SPDX-License-Identifier: Apache-2.0
#include "passes/pipeline/search/Forms.h"

#include "passes/pipeline/search/Judge.h"

namespace rota::pipe {
namespace {

/// Two chunks on each of several ranks are worth a try; on one rank they are
/// one.
std::vector<int> repeatsOf(const Shape &shape, OpenForm open) {
  if (!open.repeats)
    return {shape.repeats};
  return shape.stages > 1 ? std::vector<int>{1, 2} : std::vector<int>{1};
}

/// A request for each form, the simplest first.
std::vector<ScheduleRequest> formsOf(const ScheduleRequest &request,
                                     OpenForm open, double activations,
                                     const CostsOfShape &costsOf) {
  std::vector<ScheduleRequest> forms;
  for (int repeats : repeatsOf(request.shape, open))
    for (bool split : {false, true}) {
      if (!open.splitBackward && split != request.splitBackward)
        continue;
      ScheduleRequest form = request;
      form.shape.repeats = repeats;
      form.splitBackward = split;
      std::optional<CostTable> costs = costsOf(form.shape);
      if (!costs)
        continue;
      form.costs = std::move(*costs);
      form.activations = chunkActivations(activations, form.shape);
      forms.push_back(std::move(form));
    }
  auto count = static_cast<int64_t>(forms.size());
  for (ScheduleRequest &form : forms)
    if (count > 1)
      form.searchActions = searchActionsOf(form) / count;
  return forms;
}

struct FoundForm {
  Timeline timeline;
  double makespan = 0, activations = 0; // fullest rank
};

bool isBetter(const FoundForm &form, const FoundForm &other) {
  if (isLess(form.makespan, other.makespan) ||
      isLess(other.makespan, form.makespan))
    return form.makespan < other.makespan;
  return form.activations < other.activations;
}

double mostActivations(const Timeline &timeline) {
  int most = 0;
  for (const RankUsage &rank : simulate(timeline, CostTable())->ranks)
    most = std::max(most, rank.peakLive);
  return wholeActivations(most, timeline.shape);
}

/// Adds the report of another form, which is `better` or not.
void add(SearchReport &report, const SearchReport &own, bool better) {
  SearchReport sum = better ? own : report;
  sum.rules = report.rules + own.rules;
  sum.lowerBound = std::min(report.lowerBound, own.lowerBound);
  const SearchReport &named =
      own.namedMakespan < report.namedMakespan ? own : report;
  sum.named = named.named;
  sum.namedMakespan = named.namedMakespan;
  report = sum;
}

} // namespace

std::optional<Timeline> searchForms(std::string_view name,
                                    const ScheduleRequest &request,
                                    OpenForm open, double activations,
                                    const CostsOfShape &costsOf,
                                    SearchReport &report, std::string &error) {
  std::optional<FoundForm> best;
  std::string firstError;
  for (ScheduleRequest &form : formsOf(request, open, activations, costsOf)) {
    SearchReport own;
    form.report = &own;
    std::optional<Timeline> timeline = makeTimeline(name, form, error);
    if (!timeline) {
      firstError = firstError.empty() ? error : firstError;
      continue;
    }
    FoundForm found{std::move(*timeline), own.makespan, 0};
    found.activations = mostActivations(found.timeline);
    if (!best) {
      report = own;
      best = std::move(found);
      continue;
    }
    bool better = isBetter(found, *best);
    add(report, own, better);
    if (better)
      best = std::move(found);
  }
  error = best ? "" : firstError;
  return best ? std::optional(std::move(best->timeline)) : std::nullopt;
}

} // namespace rota::pipe
