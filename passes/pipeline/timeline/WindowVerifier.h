// SPDX-License-Identifier: Apache-2.0
//
// The timeline verifier's rules about gathered weights, gradients and offloaded
// residuals.
#ifndef ROTA_PASSES_PIPELINE_TIMELINE_WINDOWVERIFIER_H
#define ROTA_PASSES_PIPELINE_TIMELINE_WINDOWVERIFIER_H

#include "passes/pipeline/timeline/TimelineVerifier.h"

namespace rota::pipe {

/// Checks the rules `windows`, `reduced`, `exchanged` and `offload` on a
/// timeline that keeps the rules before them.
std::vector<Violation> verifyWindows(const Timeline &timeline);

} // namespace rota::pipe

#endif // ROTA_PASSES_PIPELINE_TIMELINE_WINDOWVERIFIER_H
