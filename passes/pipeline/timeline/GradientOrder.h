// SPDX-License-Identifier: Apache-2.0
//
// The order in which a timeline adds the gradients of microbatches.
#ifndef ROTA_PASSES_PIPELINE_TIMELINE_GRADIENTORDER_H
#define ROTA_PASSES_PIPELINE_TIMELINE_GRADIENTORDER_H

#include "ir/pipe/Timeline.h"

namespace rota::pipe {

/// The actions that add gradients in another order than that of ascending
/// microbatches: "B of chunks 0 to 3, I of chunk 0 (the embedding)". Empty when
/// there are none.
///
/// B and W add to the gradient of their chunk's weights, B and I of chunk 0 to
/// that of the embedding. All named schedules add in ascending order, so the
/// bits of a timeline with none of these actions are theirs.
std::string reorderedGradients(const Timeline &timeline);

} // namespace rota::pipe

#endif // ROTA_PASSES_PIPELINE_TIMELINE_GRADIENTORDER_H
