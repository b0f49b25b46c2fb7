// SPDX-License-Identifier: Apache-2.0
//
// Proves that a timeline, whoever wrote it, computes one training step and
// comes to its end.
#ifndef ROTA_PASSES_PIPELINE_TIMELINEVERIFIER_H
#define ROTA_PASSES_PIPELINE_TIMELINEVERIFIER_H

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
///   place     chunk and microbatch in range, the chunk's rank owns it
///   once      each F once; each B once, or each I and W once; no SEND or RECV,
///             or one of each for every value that crosses ranks
///   order     on a rank: F after the F of the chunk before it, B or I after
///             its own F and after those of the chunk behind it, W after its I,
///             SEND after the action that made the value, RECV before the one
///             that reads it
///   ascending each chunk's gradients (B or W) in ascending microbatch order,
///             on which the bits of their sum depend
///   windows   UNSHARD opens a window of the chunk's weights and RESHARD closes
///             it; if a chunk has windows, its actions are inside them, and
///             REDUCE_GRAD comes after each of its gradients
///   channel   the sends of a channel and the receives that match them are for
///             the same values
///   deadlock  a run, with the buffers that Timeline's comment speaks of, ends
std::vector<Violation> verifyTimeline(const Timeline &timeline);

} // namespace rota::pipe

#endif // ROTA_PASSES_PIPELINE_TIMELINEVERIFIER_H
