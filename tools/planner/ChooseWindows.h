// SPDX-License-Identifier: Apache-2.0
//
// The chunks of a single stage, and how long weights stay gathered.
#ifndef ROTA_TOOLS_PLANNER_CHOOSEWINDOWS_H
#define ROTA_TOOLS_PLANNER_CHOOSEWINDOWS_H

#include "tools/planner/ComparePolicies.h"

namespace rota {

// The two functions plan the model for each candidate and take the shortest
// step on the request's machine, of those that fit the memory if any does;
// steps that hardly differ count as equal. A policy that is open counts as
// `full`, which takes the fewest bytes.

/// Divides the layers of a single stage into chunks, so that weights, gradients
/// and updates of one chunk travel while others compute. Plans the model with a
/// chunk for the embedding, each layer and the loss, which is taken where it
/// hides the transfers. Else it plans one chunk, and a chunk for each layer,
/// for two, four and so on, as long as the step gets no longer. Of equal steps
/// it takes that with the fewest bytes. Sets `repeats` and `layersPerStage` of
/// the request where that is more than one chunk.
///
/// The plan of the choice; nothing where there is none.
std::optional<PolicyPlan> chooseRepeats(PlanRequest &request);

/// Sets the mode of gathers: of equal steps the first of `per-repeat`, `once`,
/// `per-layer` and `per-iteration`, each of which moves more bytes than the one
/// before. The last two add gradients in another order, so they need a bound on
/// memory: without one, bits must not depend on the schedule.
/// `known` is the plan of the request as it is, if there is one.
void chooseGathers(PlanRequest &request,
                   std::optional<PolicyPlan> known = std::nullopt);

} // namespace rota

#endif // ROTA_TOOLS_PLANNER_CHOOSEWINDOWS_H
