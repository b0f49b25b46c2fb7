// SPDX-License-Identifier: Apache-2.0
//
// Chooses policies stage by stage, then chunk by chunk, and plans the whole.
#include "tools/planner/ChooseRemat.h"

#include "runtime/text/Text.h"
#include "tools/planner/SearchRemat.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <tuple>

namespace rota {
namespace {

bool offloads(const PolicyPlan &row) { return row.hostBytes > 0; }

class Chooser {
public:
  Chooser(const PlanRequest &request, const std::vector<PolicyPlan> &rows)
      : request(request), options(request.compiler), rows(rows) {
    for (const PolicyPlan &row : rows)
      if (row.error.empty())
        planned.push_back(&row);
    if (!planned.empty())
      stages = planned.front()->stages.size();
  }

  std::optional<RematChoice> choose(std::string &error) const {
    if (planned.empty()) {
      error = rows.front().error;
      return std::nullopt;
    }
    std::optional<RematChoice> best = chooseForStages();
    // Parts of a chunk are made after its policy is.
    if (shape().parts == 1 && (shape().repeats > 1 || shape().hasUnpipelined))
      chooseForChunks(best);
    if (!best)
      error = whyNone();
    return best;
  }

private:
  const PlanRequest &request;
  const CompilerOptions &options;
  const std::vector<PolicyPlan> &rows;
  std::vector<const PolicyPlan *> planned; // those with a plan
  size_t stages = 0;

  bool fits(const StageNeed &need) const {
    return need.bytes <= options.memory;
  }

  const pipe::Shape &shape() const {
    return planned.front()->parts->timeline.shape;
  }

  /// The number of a planned row for each chunk: of its stage the row with the
  /// least time that fits; none where a stage has no such row. Unpipelined
  /// layers have that of most stages.
  std::vector<int> perStage(bool mayOffload) const {
    std::vector<int> ofStages;
    for (size_t stage = 0; stage < stages; ++stage) {
      int best = -1;
      for (size_t i = 0; i < planned.size(); ++i) {
        const PolicyPlan &row = *planned[i];
        if (fits(row.stages[stage]) && (mayOffload || !offloads(row)) &&
            (best < 0 ||
             isBetter(row.stages[stage], planned[best]->stages[stage])))
          best = int(i);
      }
      if (best < 0)
        return {};
      ofStages.push_back(best);
    }
    std::vector<int> chosen;
    for (int chunk = 0; chunk < shape().chunks(); ++chunk)
      chosen.push_back(shape().isUnpipelined(chunk)
                           ? mostFrequent(ofStages)
                           : ofStages[shape().rankOf(chunk)]);
    return chosen;
  }

  /// The first of those that are there most often.
  static int mostFrequent(const std::vector<int> &policies) {
    std::map<int, int> counts;
    for (int policy : policies)
      ++counts[policy];
    return *std::max_element(
        policies.begin(), policies.end(),
        [&](int a, int b) { return counts[a] < counts[b]; });
  }

  static bool isBetter(const StageNeed &a, const StageNeed &b) {
    return std::tie(a.seconds, a.bytes) < std::tie(b.seconds, b.bytes);
  }

  /// "full;1:none;chunk5:minimal": the policy of most stages, which is that of
  /// unpipelined layers, then those of others, then those of chunks that have
  /// another one than most of their stage.
  std::string textOf(const std::vector<int> &chosen) const {
    std::vector<int> ofStages;
    for (int stage = 0; stage < int(stages); ++stage) {
      std::vector<int> ofChunks;
      for (int row = 0; row < shape().rows(); ++row)
        ofChunks.push_back(chosen[shape().chunkOf(stage, row)]);
      ofStages.push_back(mostFrequent(ofChunks));
    }
    int base = shape().hasUnpipelined ? chosen.back() : mostFrequent(ofStages);
    std::string text = planned[base]->policy;
    for (size_t stage = 0; stage < stages; ++stage)
      if (ofStages[stage] != base)
        text += fmt::format(";{}:{}", stage, planned[ofStages[stage]]->policy);
    for (int chunk = 0; chunk < shape().stages * shape().rows(); ++chunk)
      if (chosen[chunk] != ofStages[shape().rankOf(chunk)])
        text +=
            fmt::format(";chunk{}:{}", chunk, planned[chosen[chunk]]->policy);
    return text;
  }

  std::optional<RematChoice> chooseForStages() const {
    std::optional<RematChoice> best;
    for (bool mayOffload : {true, false}) {
      std::vector<int> chosen = perStage(mayOffload);
      if (chosen.empty())
        continue;
      std::optional<RematChoice> choice = plan(chosen);
      if (choice &&
          (!best || choice->plan.time.timeline < best->plan.time.timeline))
        best = std::move(choice);
    }
    return best;
  }

  /// Puts the result of the search in the place of `best`, unless that has a
  /// shorter step.
  void chooseForChunks(std::optional<RematChoice> &best) const {
    std::vector<const PolicyParts *> parts;
    for (const PolicyPlan *row : planned)
      parts.push_back(row->parts.get());
    MixedPlans plans(std::move(parts));
    std::vector<int> chosen = searchRemat(plans, options.memory);
    if (chosen.empty() || (best && textOf(chosen) == best->plan.policy))
      return;
    std::optional<RematChoice> choice = plan(chosen);
    if (choice &&
        (!best || choice->plan.time.timeline <= best->plan.time.timeline))
      best = std::move(choice);
  }

  /// The plan of a choice; nothing where it does not fit after all.
  std::optional<RematChoice> plan(const std::vector<int> &chosen) const {
    RematChoice choice;
    PlanRequest other = request;
    other.compiler.setRemat(textOf(chosen));
    planPolicy(other, choice.plan);
    if (!choice.plan.error.empty() ||
        !std::all_of(choice.plan.stages.begin(), choice.plan.stages.end(),
                     [&](const StageNeed &need) { return fits(need); }))
      return std::nullopt;
    choice.plan.chosen = true;
    countRecomputed(choice.plan, rows.front());
    for (int policy : chosen)
      choice.policies.push_back(planned[policy]->policy);
    choice.leastStep = planned.front()->time.timeline;
    for (const PolicyPlan *row : planned)
      choice.leastStep = std::min(choice.leastStep, row->time.timeline);
    for (size_t stage = 0; stage < stages; ++stage)
      choice.fastest.push_back(fastest(stage));
    for (size_t chunk = 0; chunk < chosen.size(); ++chunk) {
      double &least = choice.fastestChunks.emplace_back(
          planned.front()->chunks[chunk].seconds);
      for (const PolicyPlan *row : planned)
        least = std::min(least, row->chunks[chunk].seconds);
    }
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

std::optional<RematChoice> chooseRemat(const PlanRequest &request,
                                       const std::vector<PolicyPlan> &rows,
                                       std::string &error) {
  return Chooser(request, rows).choose(error);
}

std::optional<std::string> RematChoice::policyOf(int stage) const {
  std::optional<std::string> policy;
  for (size_t chunk = 0; chunk < policies.size(); ++chunk) {
    if (plan.chunks[chunk].stage != stage)
      continue;
    if (policy && *policy != policies[chunk])
      return std::nullopt;
    policy = policies[chunk];
  }
  return policy;
}

static double percentBeyond(double seconds, double least) {
  return least > 0 ? 100 * (seconds / least - 1) : 0;
}

/// A row of the table.
static std::string choiceRow(const std::string &place, int64_t bytes,
                             double seconds, double least,
                             const std::string &policy) {
  return fmt::format("  {:>8}  {:>10.1f}  {:>6.1f} %  {}\n", place,
                     static_cast<double>(bytes) / (1 << 20),
                     percentBeyond(seconds, least), policy);
}

std::string describeChoice(const RematChoice &choice,
                           const std::string &memory) {
  std::string text = fmt::format(
      "rematerialization chosen for {} a rank (MiB, of a chunk those that its "
      "microbatches keep; time in a step beyond that of the fastest policy)\n"
      "  {:>8}  {:>10}  {:>8}  policy\n",
      memory, "stage", "peak", "time");
  for (size_t stage = 0; stage < choice.plan.stages.size(); ++stage) {
    const StageNeed &need = choice.plan.stages[stage];
    std::optional<std::string> policy = choice.policyOf(int(stage));
    text += choiceRow(std::to_string(stage), need.bytes, need.seconds,
                      choice.fastest[stage].seconds,
                      policy.value_or("of each chunk:"));
    for (size_t chunk = 0; chunk < choice.policies.size(); ++chunk) {
      const ChunkNeed &part = choice.plan.chunks[chunk];
      if (!policy && part.stage == int(stage))
        text +=
            choiceRow(fmt::format("chunk {}", chunk), part.bytes, part.seconds,
                      choice.fastestChunks[chunk], choice.policies[chunk]);
    }
  }
  return text + fmt::format(
                    "  a step takes {:.1f} % longer than without a bound\n",
                    percentBeyond(choice.plan.time.timeline, choice.leastStep));
}

} // namespace rota
