// SPDX-License-Identifier: Apache-2.0
//
// Divides the chunks of a timeline into parts, whose weights are gathered and
// whose gradients are reduced apart.
#ifndef ROTA_PASSES_PIPELINE_TIMELINE_CHUNKPARTS_H
#define ROTA_PASSES_PIPELINE_TIMELINE_CHUNKPARTS_H

#include "ir/pipe/Timeline.h"

namespace rota::pipe {

/// The largest number of parts that each pipelined chunk can be divided into,
/// where a part has a layer at least, or the embedding or the loss: the first
/// chunk has one more part than layers, and the last, unless an unpipelined
/// chunk has the loss. `layers` has those of each chunk.
int64_t mostParts(const Shape &shape, const std::vector<int64_t> &layers);

/// The layers of the chunks of `shape`, which has parts, out of `layers`, those
/// of the chunks that were divided: even numbers for the parts of a chunk.
std::vector<int64_t> layersOfParts(const Shape &shape,
                                   const std::vector<int64_t> &layers);

/// `timeline` with `parts` actions for each action of a pipelined chunk, one
/// after the other: parts ascend in F and descend in B, I and W. A pair becomes
/// pairs of parts. The unpipelined chunk stays whole. `timeline` has compute
/// actions and messages alone, and no parts yet; a message is that of the part
/// that makes or reads it.
///
/// Two parts, microbatch 3 of chunk 1:
///
///   1F3 1SEND_F3         ->  2F3 3F3 3SEND_F3
///   1RECV_B3 1B3         ->  3RECV_B3 3B3 2B3
///   (1F4;1B3)            ->  (2F4;3B3) (3F4;2B3)
Timeline divideChunks(const Timeline &timeline, int parts);

} // namespace rota::pipe

#endif // ROTA_PASSES_PIPELINE_TIMELINE_CHUNKPARTS_H
