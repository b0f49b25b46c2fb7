// SPDX-License-Identifier: Apache-2.0
//
// The choice of the policies of stages and chunks under a bound on the bytes
// of a rank.
#ifndef ROTA_TOOLS_PLANNER_CHOOSEREMAT_H
#define ROTA_TOOLS_PLANNER_CHOOSEREMAT_H

#include "tools/planner/ComparePolicies.h"

namespace rota {

/// The policies of the chunks.
struct RematChoice {
  PolicyPlan plan;                   // with the text of all, and its plan
  std::vector<std::string> policies; // by chunk
  std::vector<StageNeed> fastest;    // each stage under its fastest policy
  std::vector<double> fastestChunks; // seconds, likewise
  double leastStep = 0;              // least step of the rows

  /// The policy of all chunks of the stage; none where they differ.
  std::optional<std::string> policyOf(int stage) const;
};

/// Chooses of `rows`, one for each policy that has a name, for each stage the
/// one with the least time whose plan fits the memory.
///
/// Bytes and times of a stage do not depend on the policies of others, and in a
/// timeline whose order is given no action starts later when another is
/// shorter. So no other choice for whole stages has a shorter step, but where
/// copies to host memory are in the way of others: the choice without policies
/// that offload is planned too, and the shorter of both is taken. Where stages
/// have several chunks, or there are unpipelined layers, the result of
/// `searchRemat` is planned too, and taken unless its step is longer. So each
/// result has been planned as it is, with at most three plans beside those of
/// the rows. Without one: nothing, and the reason in `error`.
std::optional<RematChoice> chooseRemat(const PlanRequest &request,
                                       const std::vector<PolicyPlan> &rows,
                                       std::string &error);

/// The choice, for a bound of `memory`, as a table in MiB and percent.
std::string describeChoice(const RematChoice &choice,
                           const std::string &memory);

} // namespace rota

#endif // ROTA_TOOLS_PLANNER_CHOOSEREMAT_H
