// SPDX-License-Identifier: Apache-2.0
//
// The rows of the 1F1B family: schedules that differ in the length of their
// warm-up and in the place of their weight gradients alone.
#ifndef ROTA_PASSES_PIPELINE_SCHEDULES_ONEFONEBROWS_H
#define ROTA_PASSES_PIPELINE_SCHEDULES_ONEFONEBROWS_H

#include "passes/pipeline/schedules/Schedules.h"

#include <functional>

namespace rota::pipe {

/// Rules of the family. Rows over several repeats are in rounds of S
/// microbatches.
inline constexpr ShapeRule kOneRepeat = {std::nullopt, 1, MicrobatchRule::Any,
                                         "interleaved-1f1b takes several"};
inline constexpr ShapeRule kOneRepeatSplit = {
    std::nullopt, 1, MicrobatchRule::Any,
    "interleaved-zero-bubble takes several"};
inline constexpr ShapeRule kInterleaved = {
    Placement::Loop, 0, MicrobatchRule::MultipleOfStages,
    "its warm-up counts on a microbatch that goes from the last rank to the "
    "first; zbv is one for v"};

/// The numbers of a rank's row. Both directions take pairs of chunk and
/// microbatch in the order of `interleavedPair`.
struct OneFOneBRow {
  /// Forwards before the first backward; all, when there are fewer.
  int warmUp = 0;
  /// The j-th W follows the I of pair j + weightLag, or the last I where there
  /// are fewer. Nothing: B instead of I and W.
  std::optional<int> weightLag;
  /// Each B and the F after it are a pair.
  bool pairs = false;
};

/// The i-th pair that a rank works on in one direction: rounds of S
/// microbatches go through the rank's chunks one after the other, in backwards
/// from the last chunk to the first. With several repeats, M is a multiple of
/// S.
Action interleavedPair(const Shape &shape, int rank, ActionKind kind, int i);

/// Each rank runs its warm-up and then a backward and a forward in turn, W
/// between them; `rowOf` says the numbers of a rank.
Timeline oneFOneBTimeline(const Shape &shape,
                          const std::function<OneFOneBRow(int rank)> &rowOf);

} // namespace rota::pipe

#endif // ROTA_PASSES_PIPELINE_SCHEDULES_ONEFONEBROWS_H
