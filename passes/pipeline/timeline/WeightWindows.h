// SPDX-License-Identifier: Apache-2.0
//
// Adds the gathers of weights and the reductions of gradients that a timeline
// needs when weights are divided over the ranks of a stage.
#ifndef ROTA_PASSES_PIPELINE_TIMELINE_WEIGHTWINDOWS_H
#define ROTA_PASSES_PIPELINE_TIMELINE_WEIGHTWINDOWS_H

#include "ir/pipe/Timeline.h"

namespace rota::pipe {

/// How long gathered weights stay.
enum class GatherMode {
  PerIteration, // for one use
  Once,         // for the step
  PerRepeat,    // while a sliding window has room
};

/// "per-iteration", "once" and "per-repeat", and back.
const char *toString(GatherMode mode);
std::optional<GatherMode> parseGatherMode(std::string_view name);

/// The mode when none is chosen: PerRepeat where a rank has several chunks of
/// the pipeline, else Once, which gathers as often.
GatherMode defaultGatherMode(const Shape &shape);

inline constexpr int kDefaultWindow = 2;

struct GatherRequest {
  GatherMode mode = GatherMode::PerRepeat;
  /// N: most chunks that a rank has gathered at a time, kDefaultWindow when not
  /// given; `Once` takes none. With 1, no gather overlaps with computation.
  std::optional<int> window;
  /// K: most compute actions between the start of a gather and the chunk's
  /// first use; when not given, a gather starts as soon as a window is free.
  std::optional<int> prefetch;
};

/// Adds UNSHARD, RESHARD and REDUCE_GRAD to a timeline with any of the other
/// actions. Every compute action is a use of its chunk's weights.
///
/// Windows: a rank's uses are known, so a gather that needs room takes that of
/// the chunk whose next use is farthest (Belady), and with N windows none
/// gathers less often. Gathers start in the order of their uses, each when a
/// window is free, and RESHARD follows the last use. For the circular schedule
/// and a window of 2 this is the sliding window: while repeat r runs, repeat
/// r+1 of the same rank is gathered; 2R - 2 gathers, whatever M is.
///
/// Gradients: one REDUCE_GRAD for each chunk, right after its last gradient;
/// with `PerIteration`, after each gradient.
///
/// Windows or reductions that are there already stay as they are. Nothing, and
/// an `error` that names values and rule, when `PerRepeat` meets one chunk for
/// each rank, `Once` a window or a prefetch, or a number is out of range.
std::optional<Timeline> gatherWeights(const Timeline &timeline,
                                      const GatherRequest &request,
                                      std::string &error);

} // namespace rota::pipe

#endif // ROTA_PASSES_PIPELINE_TIMELINE_WEIGHTWINDOWS_H
