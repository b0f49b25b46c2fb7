// SPDX-License-Identifier: Apache-2.0
//
// Proves that a timeline, whoever wrote it, computes one training step and
// comes to its end.
#ifndef ROTA_PASSES_PIPELINE_TIMELINE_TIMELINEVERIFIER_H
#define ROTA_PASSES_PIPELINE_TIMELINE_TIMELINEVERIFIER_H

#include "ir/pipe/Timeline.h"

namespace rota::pipe {

/// Something wrong with a timeline. Position counts the rank's actions from 0;
/// rank or position is -1 where the fault has none.
struct Violation {
  int rank = -1;
  int position = -1;
  std::string action; // its text, empty when there is none
  std::string rule;   // what was expected, and what was found

  /// "rank 1, position 4, 3B0: ...".
  std::string str() const;
};

/// The rules, in the order in which they are checked. A later group is checked
/// only when the groups before it hold.
///   shape     a row for each stage; positive S, R, M
///   place     chunk and microbatch in range, the rank runs them
///   once      each F once; each B once, or each I and W once; no SEND or RECV,
///             or one of each for every value that crosses ranks; an OFFLOAD
///             and a FETCH at most once
///   order     on a rank: F after the F of the chunk before it, B or I after
///             its own F and after those of the chunk behind it, W after its I,
///             SEND after the action that made the value, RECV before the one
///             that reads it
///   windows   UNSHARD opens a window of the chunk's weights and RESHARD, or
///   the
///             end of the row, closes it. Where there are windows, each use of
///             weights (F, B, I, W) is in one of its chunk, each RESHARD is
///             behind such a use, and at most Timeline::window are open
///   reduced   where there are REDUCE_GRADs, one comes after the last gradient
///             of each chunk, and each has a gradient to reduce
///   offload   OFFLOAD after its F and before its backward, a FETCH between
///   channel   the sends of a channel and the receives that match them are for
///             the same values
///   deadlock  a run, with the buffers that Timeline's comment speaks of, ends
///
/// Why no backend can deadlock: between two ranks of different stages there are
/// sends and receives alone, and both have those of a direction in one order
/// (`channel`). Among the ranks of one stage there are collectives alone, of
/// actions and within them; they run one row, so they come in one order, with
/// nothing to check. And the order in which `deadlock` has run the stages
/// serves all replicas of the pipeline at once, each step of it on all ranks of
/// a stage, so no rank waits in a collective for one that waits for it.
std::vector<Violation> verifyTimeline(const Timeline &timeline);

} // namespace rota::pipe

#endif // ROTA_PASSES_PIPELINE_TIMELINE_TIMELINEVERIFIER_H
