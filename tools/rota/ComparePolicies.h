// SPDX-License-Identifier: Apache-2.0
//
// Memory and operations of a model under each rematerialization policy.
#ifndef ROTA_TOOLS_ROTA_COMPAREPOLICIES_H
#define ROTA_TOOLS_ROTA_COMPAREPOLICIES_H

#include "passes/differentiate/Residuals.h"
#include "tools/rota/Options.h"

#include <cstdint>
#include <string>
#include <vector>

namespace rota {

/// The plan of a model under one policy. Bytes are those of the rank that needs
/// most of each.
struct PolicyPlan {
  std::string policy;
  bool chosen = false; // by the options
  std::string error;   // why there is no plan; empty: there is one
  int64_t peakBytes = 0, activationBytes = 0, hostBytes = 0;
  double recomputed = 0; // operations of a step beyond those of the policy that
                         // keeps everything, as a share of these
  mlir::rota::ResidualSummary residuals; // of all layers
};

/// Plans the model of `options` once under each policy that has a name, in the
/// order of passes/differentiate/Remat.h, and last under that of the options if
/// it is another. Each row comes from the whole compiler up to the memory plan;
/// what it cannot plan is a row with an error, nothing is printed.
std::vector<PolicyPlan> comparePolicies(const RunOptions &options);

/// The rows as an aligned table, in MiB; the chosen one is marked.
std::string describePolicies(const std::vector<PolicyPlan> &rows);

} // namespace rota

#endif // ROTA_TOOLS_ROTA_COMPAREPOLICIES_H
