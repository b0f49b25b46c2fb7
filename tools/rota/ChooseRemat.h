// SPDX-License-Identifier: Apache-2.0
//
// `--remat auto`: the policy of each stage under a bound on the bytes of a
// rank.
#ifndef ROTA_TOOLS_ROTA_CHOOSEREMAT_H
#define ROTA_TOOLS_ROTA_CHOOSEREMAT_H

#include "tools/rota/ComparePolicies.h"

namespace rota {

/// The policies of the stages.
struct RematChoice {
  PolicyPlan plan;                   // with the text of all, and its plan
  std::vector<std::string> policies; // of the stages
  std::vector<StageNeed> fastest;    // each stage under its fastest policy
  double leastStep = 0;              // of the rows
};

/// Chooses of `rows`, one for each policy that has a name, for each stage the
/// one with the least time whose plan fits `options.memory`.
///
/// Bytes and times of a stage do not depend on the policies of others, and in a
/// timeline whose order is given no action starts later when another is
/// shorter. So no other choice has a shorter step, but where copies to host
/// memory are in the way of others: the choice without policies that offload is
/// planned too, and the shorter of both is taken. The result has been planned
/// as it is. Without one: nothing, and the reason in `error`.
std::optional<RematChoice> chooseRemat(const RunOptions &options,
                                       const std::vector<PolicyPlan> &rows,
                                       std::string &error);

/// The choice as a table, in MiB and milliseconds.
std::string describeChoice(const RematChoice &choice,
                           const RunOptions &options);

} // namespace rota

#endif // ROTA_TOOLS_ROTA_CHOOSEREMAT_H
