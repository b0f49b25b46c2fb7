// SPDX-License-Identifier: Apache-2.0
#include "runtime/program/UpdatePlaces.h"

#include <algorithm>

namespace rota {

/// Blocks of an arena begin at multiples of this; no element type is smaller
/// than two bytes.
static constexpr int64_t kAlignment = 64, kLeastBytes = 2;

bool hasPartsInPlace(const Parameter &parameter,
                     const std::vector<MeshAxis> &mesh) {
  std::vector<int64_t> stored =
      partShape(parameter.shape, parameter.storageDivision, mesh);
  std::vector<int64_t> part =
      partShape(parameter.shape, parameter.optimizerDivision, mesh);
  auto [cut, end] = std::mismatch(stored.begin(), stored.end(), part.begin());
  if (cut == stored.end())
    return false;
  int64_t parts = groupSize(mesh, optimizerAxes(parameter));
  bool isRun =
      std::all_of(stored.begin(), cut, [](int64_t size) { return size == 1; });
  int64_t elements =
      partElements(parameter.shape, parameter.optimizerDivision, mesh);
  return isRun && *cut == *end * parts &&
         elements * kLeastBytes % kAlignment == 0;
}

std::vector<int> optimizerAxes(const Parameter &parameter) {
  const Division &to = parameter.optimizerDivision;
  for (size_t d = 0; d < to.size(); ++d) {
    size_t before = d < parameter.storageDivision.size()
                        ? parameter.storageDivision[d].size()
                        : 0;
    if (to[d].size() > before)
      return {to[d].begin() + static_cast<int64_t>(before), to[d].end()};
  }
  return {};
}

static const Parameter &parameterOf(const Program &program,
                                    const Update &update) {
  return program.parameters[update.parameter];
}

bool isGradientInPlace(const Program &program, const Update &update) {
  return parameterOf(program, update).refresh >= 0 &&
         update.gradient == update.gradients[0].offset;
}

bool isUpdatedInPlace(const Program &program, const Update &update) {
  return parameterOf(program, update).refresh >= 0 &&
         update.updated == update.stored;
}

/// Elements of what is stored that come before the optimizer's part.
static int64_t elementsBefore(const Program &program, const Update &update,
                              const std::vector<int64_t> &coordinates) {
  const Parameter &parameter = parameterOf(program, update);
  int64_t index = 0;
  for (int axis : optimizerAxes(parameter))
    index = index * program.mesh[axis].size + coordinates[axis];
  return index * partElements(parameter.shape, parameter.optimizerDivision,
                              program.mesh);
}

int64_t gradientPlace(const Program &program, const Update &update,
                      const std::vector<int64_t> &coordinates) {
  if (!isGradientInPlace(program, update))
    return update.gradient;
  return update.gradient + byteSize(parameterOf(program, update).gradient) *
                               elementsBefore(program, update, coordinates);
}

std::vector<int64_t> squarePlaces(const Program &program, const Stage &stage) {
  std::vector<int64_t> places = {0};
  for (const Update &update : stage.updates) {
    const Parameter &parameter = parameterOf(program, update);
    int64_t bytes = parameter.isFrozen ? 0 : 4 * parameter.rows;
    places.push_back(places.back() +
                     (bytes + kAlignment - 1) / kAlignment * kAlignment);
  }
  return places;
}

int exchangeOf(const Program &program, const Stage &stage,
               const ActionTemplate &form, int update) {
  const Parameter &parameter =
      parameterOf(program, stage.updates[static_cast<size_t>(update)]);
  return form.kind == ActionKind::Refresh
             ? parameter.refresh
             : parameter.reduce[static_cast<size_t>(form.round)];
}

std::vector<InTimeline> updatesInTimeline(const Stage &stage) {
  std::vector<InTimeline> all(stage.updates.size());
  for (const ActionTemplate &form : stage.templates)
    for (int update : form.updates) {
      InTimeline &one = all[static_cast<size_t>(update)];
      if (form.kind == ActionKind::Refresh)
        one.refreshes = true;
      else
        one.sums = std::max(one.sums, form.round + 1);
    }
  return all;
}

int64_t updatedPlace(const Program &program, const Update &update,
                     const std::vector<int64_t> &coordinates) {
  if (!isUpdatedInPlace(program, update))
    return update.updated;
  return update.updated + byteSize(parameterOf(program, update).compute) *
                              elementsBefore(program, update, coordinates);
}

} // namespace rota
