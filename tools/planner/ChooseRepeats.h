// SPDX-License-Identifier: Apache-2.0
//
// The number of chunks of layers of a rank that has the whole model.
#ifndef ROTA_TOOLS_PLANNER_CHOOSEREPEATS_H
#define ROTA_TOOLS_PLANNER_CHOOSEREPEATS_H

#include "tools/planner/Request.h"

namespace rota {

/// Divides the layers of a single stage into chunks, so that the weights and
/// gradients of one chunk travel while others compute. Plans the model with a
/// chunk for the embedding, each layer and the loss, then with a chunk for each
/// layer, for two, four and so on, as long as the step gets no longer, and with
/// one chunk. Takes the shortest step on the assumed machine, then, of steps
/// that differ by a thousandth at most, the fewest bytes. Sets `repeats` and
/// `layersPerStage` of the request where that is more than one chunk.
void chooseRepeats(PlanRequest &request);

} // namespace rota

#endif // ROTA_TOOLS_PLANNER_CHOOSEREPEATS_H
