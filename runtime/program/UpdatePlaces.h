// SPDX-License-Identifier: Apache-2.0
//
// Where a rank finds its part of a summed gradient and of an updated parameter:
// in buffers of their own, or in place, inside of what is stored; and what the
// timeline exchanges for updates.
#ifndef ROTA_RUNTIME_PROGRAM_UPDATEPLACES_H
#define ROTA_RUNTIME_PROGRAM_UPDATEPLACES_H

#include "runtime/program/Program.h"

namespace rota {

/// Whether the optimizer divides what is stored into runs of elements, each of
/// which begins where a block of an arena may. The end of a step then needs no
/// buffers: a gradient is reduced to the rank's part of its accumulator, and
/// the copies are gathered from the rank's part of the copy.
bool hasPartsInPlace(const Parameter &parameter,
                     const std::vector<MeshAxis> &mesh);

/// The axes by which the optimizer divides what is stored further, major first.
std::vector<int> optimizerAxes(const Parameter &parameter);

/// Whether the optimizer's part of the update's gradient lies in its
/// accumulator, and whether its updated part lies in what is stored.
bool isGradientInPlace(const Program &program, const Update &update);
bool isUpdatedInPlace(const Program &program, const Update &update);

/// Offsets of Update::gradient and Update::updated in the arena of the rank
/// with these coordinates.
int64_t gradientPlace(const Program &program, const Update &update,
                      const std::vector<int64_t> &coordinates);
int64_t updatedPlace(const Program &program, const Update &update,
                     const std::vector<int64_t> &coordinates);

/// The place of each update's sums of squares, in bytes from
/// StepOffsets::squares on, and as one more entry the bytes of all of them. A
/// frozen parameter has none.
std::vector<int64_t> squarePlaces(const Program &program, const Stage &stage);

/// The collective by which an action, SUM_GRAD or REFRESH, exchanges one of its
/// updates.
int exchangeOf(const Program &program, const Stage &stage,
               const ActionTemplate &form, int update);

/// The part of an update's exchanges that a stage's timeline does; the rest is
/// left for the step's end.
struct InTimeline {
  int sums = 0; // rounds of Parameter::reduce, from the first on
  bool refreshes = false;
};
/// An entry for each update of the stage.
std::vector<InTimeline> updatesInTimeline(const Stage &stage);

} // namespace rota

#endif // ROTA_RUNTIME_PROGRAM_UPDATEPLACES_H
