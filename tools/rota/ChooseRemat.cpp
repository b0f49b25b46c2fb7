// SPDX-License-Identifier: Apache-2.0
//
// Chooses policies stage by stage, then plans the whole.
#include "tools/rota/ChooseRemat.h"

#include "runtime/program/Text.h"

#include "llvm/ADT/StringRef.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <tuple>

namespace rota {
namespace {

bool offloads(const PolicyPlan &row) { return row.hostBytes > 0; }

class Chooser {
public:
  Chooser(const RunOptions &options, const std::vector<PolicyPlan> &rows)
      : options(options), rows(rows) {
    for (const PolicyPlan &row : rows)
      if (row.error.empty())
        planned.push_back(&row);
    stages = planned.empty() ? 0 : planned.front()->stages.size();
  }

  std::optional<RematChoice> choose(std::string &error) const {
    if (planned.empty()) {
      error = rows.front().error;
      return std::nullopt;
    }
    std::optional<RematChoice> best;
    for (bool mayOffload : {true, false}) {
      std::vector<const PolicyPlan *> chosen = perStage(mayOffload);
      if (chosen.empty())
        continue;
      std::optional<RematChoice> choice = plan(chosen);
      if (choice && (!best || choice->plan.step < best->plan.step))
        best = std::move(choice);
    }
    if (!best)
      error = whyNone();
    return best;
  }

private:
  const RunOptions &options;
  const std::vector<PolicyPlan> &rows;
  std::vector<const PolicyPlan *> planned; // those with a plan
  size_t stages = 0;

  bool fits(const StageNeed &need) const {
    return need.bytes <= options.memory;
  }

  /// For each stage the row with the least time that fits; none where a stage
  /// has no such row.
  std::vector<const PolicyPlan *> perStage(bool mayOffload) const {
    std::vector<const PolicyPlan *> chosen;
    for (size_t stage = 0; stage < stages; ++stage) {
      const PolicyPlan *best = nullptr;
      for (const PolicyPlan *row : planned)
        if (fits(row->stages[stage]) && (mayOffload || !offloads(*row)) &&
            (!best || isBetter(row->stages[stage], best->stages[stage])))
          best = row;
      if (!best)
        return {};
      chosen.push_back(best);
    }
    return chosen;
  }

  static bool isBetter(const StageNeed &a, const StageNeed &b) {
    return std::tie(a.seconds, a.bytes) < std::tie(b.seconds, b.bytes);
  }

  /// "full;1:none": the policy of most stages, then those of others.
  std::string textOf(const std::vector<const PolicyPlan *> &chosen) const {
    std::map<const PolicyPlan *, int> counts;
    for (const PolicyPlan *row : chosen)
      ++counts[row];
    const PolicyPlan *base = chosen.front();
    for (const PolicyPlan *row : chosen)
      if (counts[row] > counts[base])
        base = row;
    std::string text = base->policy;
    for (size_t stage = 0; stage < stages; ++stage)
      if (chosen[stage] != base)
        text += fmt::format(";{}:{}", stage, chosen[stage]->policy);
    return text;
  }

  /// The plan of a choice; nothing where it does not fit after all.
  std::optional<RematChoice>
  plan(const std::vector<const PolicyPlan *> &chosen) const {
    RematChoice choice;
    RunOptions other = options;
    other.remat = textOf(chosen);
    planPolicy(other, choice.plan);
    if (!choice.plan.error.empty() ||
        !std::all_of(choice.plan.stages.begin(), choice.plan.stages.end(),
                     [&](const StageNeed &need) { return fits(need); }))
      return std::nullopt;
    choice.plan.chosen = true;
    countRecomputed(choice.plan, rows.front());
    for (const PolicyPlan *row : chosen)
      choice.policies.push_back(row->policy);
    choice.leastStep = planned.front()->step;
    for (const PolicyPlan *row : planned)
      choice.leastStep = std::min(choice.leastStep, row->step);
    for (size_t stage = 0; stage < stages; ++stage)
      choice.fastest.push_back(fastest(stage));
    return choice;
  }

  StageNeed fastest(size_t stage) const {
    StageNeed best = planned.front()->stages[stage];
    for (const PolicyPlan *row : planned)
      if (isBetter(row->stages[stage], best))
        best = row->stages[stage];
    return best;
  }

  /// Names the stage that needs most under the policy with which it needs
  /// least.
  std::string whyNone() const {
    int64_t most = 0;
    std::string text;
    for (size_t stage = 0; stage < stages; ++stage) {
      const PolicyPlan *least = planned.front();
      for (const PolicyPlan *row : planned)
        if (row->stages[stage].bytes < least->stages[stage].bytes)
          least = row;
      int64_t bytes = least->stages[stage].bytes;
      if (bytes <= most)
        continue;
      most = bytes;
      text =
          fmt::format("'memory': expected at least {} bytes, which stage {} "
                      "takes with '{}' "
                      "of all policies, got {}",
                      grouped(bytes), stage, least->policy, options.memoryText);
    }
    return text;
  }
};

} // namespace

std::optional<RematChoice> chooseRemat(const RunOptions &options,
                                       const std::vector<PolicyPlan> &rows,
                                       std::string &error) {
  return Chooser(options, rows).choose(error);
}

std::string describeChoice(const RematChoice &choice,
                           const RunOptions &options) {
  auto percent = [](double seconds, double least) {
    return least > 0 ? 100 * (seconds / least - 1) : 0;
  };
  std::string text = fmt::format(
      "rematerialization chosen for {} a rank (MiB; time of a rank in a step "
      "beyond that of its fastest policy)\n  stage  {:>10}  {:>8}  policy\n",
      options.memoryText, "peak", "time");
  for (size_t stage = 0; stage < choice.policies.size(); ++stage) {
    const StageNeed &need = choice.plan.stages[stage];
    text += fmt::format("  {:>5}  {:>10.1f}  {:>6.1f} %  {}\n", stage,
                        static_cast<double>(need.bytes) / (1 << 20),
                        percent(need.seconds, choice.fastest[stage].seconds),
                        choice.policies[stage]);
  }
  return text + fmt::format("  a step takes {:.1f} % longer than without a "
                            "bound\n",
                            percent(choice.plan.step, choice.leastStep));
}

} // namespace rota
