// SPDX-License-Identifier: Apache-2.0
//
// `rota plan`: parameters, operations, memory by rank and use, the timeline.
#include "tools/rota/Verbs.h"

#include "runtime/program/JsonText.h"
#include "tools/compiler/ThreadedContext.h"
#include "tools/planner/StateTable.h"
#include "tools/rota/CheckInputs.h"
#include "tools/rota/Compile.h"
#include "tools/rota/Requests.h"
#include "tools/rota/data/TokenizeData.h"
#include "tools/rota/plan/ExportPlan.h"
#include "tools/rota/plan/PlanExcess.h"
#include "tools/rota/plan/PlanReport.h"
#include "tools/rota/plan/Search.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace rota {

int runPlan(const RunOptions &given) {
  RunOptions options = given;
  std::string error;
  if (!options.report.empty() && !checkOutput(options.report, error))
    return reportBadInput(error);
  if (ExitCode code = findDocumentEnd(options))
    return code;
  if (options.search)
    return runSearch(options);
  const PlanRequest asked = planRequest(options);
  PlanRequest request = asked;
  auto threaded = threadedContext(modelDialects());
  mlir::MLIRContext &context = *threaded;
  DiagnosticPrinter printer(context, options.remarks);
  PlanReport report;
  if (ExitCode code = makePlan(context, request, report.answer, error)) {
    if (!error.empty())
      code = reportBadInput(error);
    if (code == kExitBadInput && asked.compiler.memory > 0)
      printExcess(asked, options);
    return code;
  }
  noteActivations(report.answer.choices, options);
  if (options.exported)
    return exportPlan(options, request, report.answer);
  const Program &program = report.answer.plan.program;
  if (options.state) {
    fmt::print("{}", options.json ? jsonText(stateJson(program), 2) + "\n"
                                  : describeState(program));
    return kExitSuccess;
  }
  if (!options.measured.empty()) {
    report.measured =
        simulateMeasured(options.measured, report.answer.plan.timeline,
                         int(options.costs.cores), error);
    if (!report.measured)
      return reportBadInput("'measured': " + error);
  }
  std::vector<PolicyPlan> &policies = report.answer.choices.policies;
  if (policies.empty())
    policies = comparePolicies(request);
  nlohmann::ordered_json json;
  if (options.json || !options.report.empty())
    json = planJson(options, report);
  fmt::print("{}", options.json ? planJsonText(json, report)
                                : describePlan(options, report));
  return options.report.empty()
             ? kExitSuccess
             : writePlanPage(options, report, std::move(json));
}

} // namespace rota
