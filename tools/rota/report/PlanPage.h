// SPDX-License-Identifier: Apache-2.0
//
// A plan as one HTML page that needs no other file and no network.
#ifndef ROTA_TOOLS_ROTA_REPORT_PLANPAGE_H
#define ROTA_TOOLS_ROTA_REPORT_PLANPAGE_H

#include "tools/planner/MemoryCurve.h"
#include "tools/rota/report/Html.h"

#include <optional>

namespace rota::report {

/// A plan of a search.
struct SearchedPlan {
  std::string name; // its settings, for people
  double seconds = 0;
  int64_t bytes = 0; // of the rank that needs most
  bool isBest = false;
  bool isOnFront = false; // no other one is shorter and smaller
};

/// What the page shows.
struct PlanPage {
  Json plan;        // the object of `rota plan --json`
  std::string text; // the memory table
  SimulatedPlan simulated;
  size_t stage = 0;  // the one whose ranks need most
  MemoryCurve curve; // of a rank of that stage
  /// Bytes of a device: of a machine, or the bound that the user gave.
  std::optional<int64_t> deviceBytes;
  std::vector<SearchedPlan> searched; // empty: there was no search
};

/// Every number of the page that is in `plan` is in a `data` element, whose
/// value is the number and whose `data-of` the way to it: "stages.0.bytes".
std::string makePlanPage(const PlanPage &page);

// Its parts: HTML, empty where there is nothing to show.

/// The bytes of a rank over the time of the step, by use, and each stage's.
std::string planMemorySection(const PlanPage &page);
/// Transfers by axes and by sort.
std::string planTransferSection(const Json &plan);
/// Memory and time of each plan of a search.
std::string searchSection(const std::vector<SearchedPlan> &plans);

/// A number of the plan as a `data` element.
std::string dataOf(const Json &plan, const std::string &path,
                   std::string (*format)(double));

} // namespace rota::report

#endif // ROTA_TOOLS_ROTA_REPORT_PLANPAGE_H
