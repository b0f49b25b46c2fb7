// SPDX-License-Identifier: Apache-2.0
//
// Sizes and predicates of a program's parts, and its table of actions.
#include "runtime/program/Program.h"

namespace rota {

int64_t byteSize(ElementType type) { return type == ElementType::BF16 ? 2 : 4; }

int64_t DataForm::elements() const {
  int64_t count = shape.empty() ? 0 : 1;
  for (int64_t size : shape)
    count *= size;
  return count;
}

int64_t DataForm::bytes() const { return elements() * byteSize(type); }

int64_t elementCount(const Parameter &parameter) {
  int64_t count = 1;
  for (int64_t size : parameter.shape)
    count *= size;
  return count;
}

int64_t groupSize(const std::vector<MeshAxis> &mesh,
                  const std::vector<int> &axes) {
  int64_t ranks = 1;
  for (int axis : axes)
    ranks *= mesh[axis].size;
  return ranks;
}

int64_t rankCount(const Program &program) {
  int64_t ranks = 1;
  for (const MeshAxis &axis : program.mesh)
    ranks *= axis.size;
  return ranks;
}

std::vector<int64_t> partShape(const std::vector<int64_t> &shape,
                               const Division &division,
                               const std::vector<MeshAxis> &mesh) {
  std::vector<int64_t> part = shape;
  for (size_t i = 0; i < division.size(); ++i) {
    int64_t parts = groupSize(mesh, division[i]);
    part[i] = (part[i] + parts - 1) / parts;
  }
  return part;
}

int64_t partElements(const std::vector<int64_t> &shape,
                     const Division &division,
                     const std::vector<MeshAxis> &mesh) {
  int64_t count = 1;
  for (int64_t size : partShape(shape, division, mesh))
    count *= size;
  return count;
}

int Stage::addAction(int templateNumber, int microbatch,
                     std::span<const int64_t> ownSlots,
                     std::span<const int> ownWaits) {
  actions.push_back({templateNumber, microbatch, static_cast<int>(slots.size()),
                     static_cast<int>(waits.size()),
                     static_cast<int>(ownWaits.size())});
  slots.insert(slots.end(), ownSlots.begin(), ownSlots.end());
  waits.insert(waits.end(), ownWaits.begin(), ownWaits.end());
  return static_cast<int>(actions.size()) - 1;
}

int Stage::addAction(ActionTemplate actionTemplate, int microbatch,
                     std::span<const int> ownWaits) {
  templates.push_back(std::move(actionTemplate));
  return addAction(static_cast<int>(templates.size()) - 1, microbatch, {},
                   ownWaits);
}

std::vector<int64_t> Stage::countActions() const {
  std::vector<int64_t> counts(templates.size());
  for (const PlannedAction &action : actions)
    ++counts[action.templateNumber];
  return counts;
}

FrameOffsets frameOf(const Call &call, std::span<const int64_t> slots,
                     int microbatch) {
  FrameOffsets offsets;
  for (int i = 0; i < kFrameFields; ++i)
    offsets[i] = resolve(call.frame[i], slots, microbatch);
  return offsets;
}

bool hasMeans(const Program &program) {
  for (const Observation &observation : program.observations)
    if (observation.isAveraged)
      return true;
  return false;
}

} // namespace rota
