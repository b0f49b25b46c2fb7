// SPDX-License-Identifier: Apache-2.0
//
// Adds the gathers of weights and the reductions of gradients that a timeline
// needs when weights are divided over the ranks of a stage.
#ifndef ROTA_PASSES_PIPELINE_TIMELINE_WEIGHTWINDOWS_H
#define ROTA_PASSES_PIPELINE_TIMELINE_WEIGHTWINDOWS_H

#include "ir/pipe/Timeline.h"

namespace rota {
namespace pipe {

/// The time for which gathered weights stay in memory.
enum class GatherMode {
  PerIteration, // one use
  Once,         // the step
  PerRepeat,    // as long as a sliding window has room
  PerLayer,     // one use by the chunks that `divide-chunks` makes of layers
  Auto,         // PerRepeat where a rank has several chunks of the pipeline,
                // else Once, which gathers as often
};

} // namespace pipe
template <> struct Names<pipe::GatherMode> {
  static constexpr const char *list[] = {"per-iteration", "once", "per-repeat",
                                         "per-layer", "auto"};
};
namespace pipe {

inline constexpr int kDefaultWindow = 2;

/// The mode that `Auto` stands for with that shape; every other one itself.
GatherMode resolvedMode(GatherMode mode, const Shape &shape);

struct GatherRequest {
  GatherMode mode = GatherMode::PerRepeat;
  /// N: the largest number of chunks that a rank has gathered at a time;
  /// kDefaultWindow when not given. `Once` takes none. With 1, no gather
  /// overlaps with computation.
  std::optional<int> window;
  /// K: the largest number of compute actions between the start of a gather and
  /// the first use of the chunk. When not given, a gather starts as soon as a
  /// window is free.
  std::optional<int> prefetch;
};

/// Adds UNSHARD, RESHARD and REDUCE_GRAD to a timeline with any of the other
/// actions. Every compute action is a use of its chunk's weights.
///
/// Windows: the uses of a rank are known, so a gather that needs a window
/// replaces the chunk whose next use is farthest (Belady). No algorithm with N
/// windows needs fewer gathers. Gathers start in the order of their uses, each
/// when a window is free; RESHARD follows the last use. For the circular
/// schedule and a window of 2 this is the sliding window: while repeat r runs,
/// repeat r+1 of the same rank is gathered; 2R - 2 gathers for any M.
///
/// Gradients: one REDUCE_GRAD for each chunk, right after its last gradient;
/// with `PerIteration` and `PerLayer`, after each gradient.
///
/// Windows or reductions that the timeline has already are kept. Nothing, and
/// an `error` that names values and rule, for `PerRepeat` with one chunk for
/// each rank, for `Once` with a window or a prefetch, for a number out of
/// range, or for a window of one chunk and a pair of two.
std::optional<Timeline> gatherWeights(const Timeline &timeline,
                                      GatherRequest request,
                                      std::string &error);

} // namespace pipe
} // namespace rota

#endif // ROTA_PASSES_PIPELINE_TIMELINE_WEIGHTWINDOWS_H
