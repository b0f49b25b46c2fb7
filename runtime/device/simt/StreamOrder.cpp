// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/simt/StreamOrder.h"

#include <algorithm>
#include <fmt/format.h>

namespace rota::simt {

Clock join(const Clock &one, const Clock &other) {
  if (!one || one == other)
    return other;
  if (!other)
    return one;
  auto both = std::make_shared<std::vector<uint32_t>>(
      std::max(one->size(), other->size()));
  for (const Clock &clock : {one, other})
    for (size_t lane = 0; lane < clock->size(); ++lane)
      (*both)[lane] = std::max((*both)[lane], (*clock)[lane]);
  return both;
}

bool OrderedOperation::check(OperationId earlier) const {
  bool isEarlier = true;
  if (earlier & StreamOrder::kSet) {
    for (OperationId member : order->membersOf(earlier))
      isEarlier = isEarlier && isAfter(member);
  } else if (const StreamOrder::Entry *entry = order->find(earlier)) {
    isEarlier =
        entry->lane == lane || (before && entry->lane < before->size() &&
                                (*before)[entry->lane] >= entry->time);
  }
  if (isEarlier)
    lastChecked = earlier;
  return isEarlier;
}

bool OrderedOperation::isIn(OperationId other) const {
  if (!(other & StreamOrder::kSet))
    return other == number;
  std::vector<OperationId> members = order->membersOf(other);
  return !members.empty() && members.back() == number;
}

OperationId OrderedOperation::joinedWith(OperationId others) const {
  std::vector<OperationId> members;
  for (OperationId member : order->membersOf(others))
    if (!isAfter(member))
      members.push_back(member);
  members.push_back(number);
  std::lock_guard lock(order->mutex);
  OperationId &set = order->joined[{others, number}];
  if (set == 0) {
    order->sets.push_back(std::move(members));
    set = StreamOrder::kSet | static_cast<OperationId>(order->sets.size());
  }
  return set;
}

bool OrderedOperation::isAfterOthers(OperationId set) const {
  std::vector<OperationId> members = order->membersOf(set);
  return std::all_of(members.begin(), members.end(), [&](OperationId member) {
    return member == number || isAfter(member);
  });
}

Lane StreamOrder::makeLane(std::string name) {
  lanes.push_back(name);
  return {std::move(name), static_cast<uint32_t>(lanes.size() - 1)};
}

OrderedOperation StreamOrder::begin(Lane &lane) {
  OrderedOperation operation;
  if (!isWatching)
    return operation;
  entries.push_back({lane.number, ++lane.time, "an operation"});
  if (entries.size() > kMostEntries) {
    entries.pop_front();
    ++firstId;
  }
  operation.order = this;
  operation.number = firstId + static_cast<OperationId>(entries.size()) - 1;
  operation.lane = lane.number;
  operation.before = lane.before;
  return operation;
}

void StreamOrder::name(const OrderedOperation &operation, std::string what) {
  if (operation.number != 0)
    entries.back().what = std::move(what);
}

Clock StreamOrder::now(const Lane &lane) const {
  if (!isWatching)
    return nullptr;
  auto clock = lane.before
                   ? std::make_shared<std::vector<uint32_t>>(*lane.before)
                   : std::make_shared<std::vector<uint32_t>>();
  if (clock->size() <= lane.number)
    clock->resize(lane.number + 1);
  (*clock)[lane.number] = lane.time;
  return clock;
}

const StreamOrder::Entry *StreamOrder::find(OperationId id) const {
  return id < firstId ? nullptr : &entries[id - firstId];
}

std::vector<OperationId> StreamOrder::membersOf(OperationId id) const {
  if (!(id & kSet))
    return {id};
  std::lock_guard lock(mutex);
  return sets[(id & ~kSet) - 1];
}

std::string StreamOrder::describe(OperationId id) const {
  std::string text;
  for (OperationId member : membersOf(id))
    if (const Entry *entry = find(member))
      text += fmt::format("{}{} on {}", text.empty() ? "" : " or ", entry->what,
                          lanes[entry->lane]);
  return text;
}

const std::string &StreamOrder::laneOf(OperationId id) const {
  return lanes[entries[id - firstId].lane];
}

} // namespace rota::simt
