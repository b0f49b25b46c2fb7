// SPDX-License-Identifier: Apache-2.0
//
// The timeline verifier's rules about several ranks at once.
#ifndef ROTA_PASSES_PIPELINE_TIMELINE_DEADLOCKVERIFIER_H
#define ROTA_PASSES_PIPELINE_TIMELINE_DEADLOCKVERIFIER_H

#include "passes/pipeline/timeline/TimelineVerifier.h"

namespace rota::pipe {

/// Checks the rules `channel` and `deadlock` on a timeline that keeps the rules
/// before them.
std::vector<Violation> verifyProgress(const Timeline &timeline);

} // namespace rota::pipe

#endif // ROTA_PASSES_PIPELINE_TIMELINE_DEADLOCKVERIFIER_H
