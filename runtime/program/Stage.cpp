// SPDX-License-Identifier: Apache-2.0
//
// The table of actions of a stage.
#include "runtime/program/Stage.h"

namespace rota {

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

} // namespace rota
