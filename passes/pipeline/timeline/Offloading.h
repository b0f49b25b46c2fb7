// SPDX-License-Identifier: Apache-2.0
//
// Adds the copies of residuals to host memory and back.
#ifndef ROTA_PASSES_PIPELINE_TIMELINE_OFFLOADING_H
#define ROTA_PASSES_PIPELINE_TIMELINE_OFFLOADING_H

#include "ir/pipe/Timeline.h"

namespace rota::pipe {

/// Adds an OFFLOAD after each F (and its sends) of the chunks, and a FETCH
/// `prefetch` compute actions before its B or I. Where no compute action would
/// stand between the two, neither is added. `chunks` has for each chunk of the
/// timeline whether it has residuals to offload. `timeline` has no OFFLOAD and
/// FETCH yet; `prefetch` is not negative.
Timeline offloadResiduals(const Timeline &timeline,
                          const std::vector<bool> &chunks, int prefetch);

} // namespace rota::pipe

#endif // ROTA_PASSES_PIPELINE_TIMELINE_OFFLOADING_H
