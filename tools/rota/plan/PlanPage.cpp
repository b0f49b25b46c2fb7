// SPDX-License-Identifier: Apache-2.0
//
// The page of `rota plan --report`.
#include "tools/rota/report/PlanPage.h"

#include "runtime/files/Streams.h"
#include "runtime/program/RuntimeMemory.h"
#include "tools/rota/plan/PlanReport.h"

#include "llvm/ADT/STLExtras.h"

#include <fmt/format.h>

namespace rota {

/// Those on the front are all shorter than the smaller ones.
static std::vector<report::SearchedPlan>
searchedPlans(const std::vector<PlannedCandidate> &plans) {
  std::vector<report::SearchedPlan> rows;
  for (const PlannedCandidate &plan : plans) {
    bool isBeaten = llvm::any_of(plans, [&](const PlannedCandidate &other) {
      return other.seconds <= plan.seconds && other.bytes <= plan.bytes &&
             (other.seconds < plan.seconds || other.bytes < plan.bytes);
    });
    rows.push_back({flagsOf(plan.candidate), plan.seconds, plan.bytes,
                    rows.empty(), !isBeaten});
  }
  return rows;
}

int writePlanPage(const RunOptions &options, const PlanReport &report,
                  nlohmann::ordered_json json) {
  const Plan &plan = report.answer.plan;
  report::PlanPage page;
  page.plan = std::move(json);
  page.text = plan.program.plan;
  page.searched = searchedPlans(report.searched);
  if (options.compiler.memory > 0)
    page.deviceBytes = options.compiler.memory;
  for (size_t stage = 0; stage < plan.program.stages.size(); ++stage)
    if (plan.program.stages[stage].arenaBytes >
        plan.program.stages[page.stage].arenaBytes)
      page.stage = stage;
  if (auto simulated = simulatePlan(plan)) {
    page.simulated = std::move(*simulated);
    std::vector<memory::BlockLives> lives = blockLives(plan);
    if (!lives.empty())
      page.curve =
          memoryCurve(plan, page.simulated, lives[page.stage], page.stage);
  }
  if (int code = writeOutput(options.report, report::makePlanPage(page)))
    return code;
  fmt::print(stderr, "wrote {}\n", options.report);
  return kExitSuccess;
}

} // namespace rota
