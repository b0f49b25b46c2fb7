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

/// A rank of one stage under a policy.
struct StageNeed {
  int64_t bytes = 0; // deviceBytes
  /// In a step on the assumed machine: of its computation, with what it
  /// computes again, and of its waits for copies to and from host memory alone.
  double seconds = 0;
};

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
  std::vector<StageNeed> stages;
  double step = 0; // seconds of a step without updates on the assumed machine
};

/// Plans the model of `options` as they are, but for bounds on memory, in a
/// context of its own and without verification. Returns the operations of a
/// step; 0 where there is no plan, with the row's error.
double planPolicy(const RunOptions &options, PolicyPlan &row);

/// Plans the model of `options` once under each policy that has a name, in the
/// order of passes/differentiate/Remat.h, and last under that of the options if
/// it is another. Each row comes from the whole compiler up to the memory plan;
/// what it cannot plan is a row with an error, nothing is printed.
std::vector<PolicyPlan> comparePolicies(const RunOptions &options);

/// The rows as an aligned table, in MiB; the chosen one is marked.
std::string describePolicies(const std::vector<PolicyPlan> &rows);

} // namespace rota

#endif // ROTA_TOOLS_ROTA_COMPAREPOLICIES_H
