// SPDX-License-Identifier: Apache-2.0
//
// Proves that any timeline computes one training step and ends.
#ifndef ROTA_PASSES_PIPELINE_TIMELINE_TIMELINEVERIFIER_H
#define ROTA_PASSES_PIPELINE_TIMELINE_TIMELINEVERIFIER_H

#include "ir/pipe/Timeline.h"

namespace rota::pipe {

/// A rule that a timeline breaks. Position counts the rank's actions from 0;
/// rank or position is -1 where the violation has none.
struct Violation {
  int rank = -1;
  int position = -1;
  std::string action; // its text, empty when there is none
  std::string rule;   // expectation and finding

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
///             its own F and after those of the chunk after it, W after its I,
///             SEND after the action that made the value, RECV before the one
///             that reads it
///   pair      an F and a B or I of another microbatch, side by side; no other
///             action between them
///   windows   UNSHARD opens a window of the chunk's weights; RESHARD or the
///             end of the row closes it. Where there are windows, each use of
///             weights (F, B, I, W) is in one of its chunk, each RESHARD is
///             after such a use, and at most Timeline::window are open
///   reduced   where there are REDUCE_GRADs, one comes after the last gradient
///             of each chunk, and each has a gradient to reduce
///   exchanged SUM_GRAD when the chunk has all its gradients, reduced where
///             there are REDUCE_GRADs. At most one REFRESH of a chunk, before
///             its first use and UNSHARD
///   offload   OFFLOAD after its F and before its backward, a FETCH between
///   channel   the sends of a channel and the receives that match them are for
///             the same values
///   deadlock  an execution with the buffers of Timeline's comment ends
///
/// These rules exclude deadlocks for every backend. Ranks of different stages
/// exchange sends and receives alone, and both ends have those of a direction
/// in the same order (`channel`). Ranks of one stage take part in collectives
/// alone, of actions and within them; they run the same row, so the order is
/// the same. The execution order that `deadlock` finds for the stages is valid
/// for all replicas of the pipeline at once, each step of it on all ranks of a
/// stage, so there is no cycle of ranks that wait for each other in
/// collectives.
std::vector<Violation> verifyTimeline(const Timeline &timeline);

} // namespace rota::pipe

#endif // ROTA_PASSES_PIPELINE_TIMELINE_TIMELINEVERIFIER_H
