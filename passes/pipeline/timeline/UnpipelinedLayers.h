// SPDX-License-Identifier: Apache-2.0
//
// Adds the layers that the pipeline leaves out to its timeline.
#ifndef ROTA_PASSES_PIPELINE_TIMELINE_UNPIPELINEDLAYERS_H
#define ROTA_PASSES_PIPELINE_TIMELINE_UNPIPELINEDLAYERS_H

#include "ir/pipe/Timeline.h"

namespace rota::pipe {

/// Adds the unpipelined chunk of `timeline.shape` to rows that have F, B, I and
/// W of the other chunks: F and B (or I and W, where the last pipelined chunk
/// is split) of each microbatch, one after the other, on the stage of the
/// microbatch. Counted in unit slots, a stage takes a microbatch as soon as its
/// activation is there, before the next action of its row, since the backward
/// of the pipelined chunks waits for it. It takes its microbatches in ascending
/// order or, where the rows would wait for ever so, in the order in which the
/// activations come. The order of the rows stays.
///
/// Nothing when the rows do not complete without the unpipelined chunk.
std::optional<Timeline> addUnpipelinedLayers(const Timeline &timeline);

/// addUnpipelinedLayers for a timeline whose shape has no unpipelined chunk
/// yet. Nothing, and an `error`, when M is not a multiple of S, the rows do not
/// complete, or they have actions other than F, B, I and W, which would have to
/// be moved.
std::optional<Timeline> withUnpipelinedLayers(Timeline timeline,
                                              std::string &error);

} // namespace rota::pipe

#endif // ROTA_PASSES_PIPELINE_TIMELINE_UNPIPELINEDLAYERS_H
