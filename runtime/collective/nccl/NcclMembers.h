// SPDX-License-Identifier: Apache-2.0
//
// Communicators without NCCL: how their members meet, divide themselves, and
// match sends with receives. Callers lock.
#ifndef ROTA_RUNTIME_COLLECTIVE_NCCL_NCCLMEMBERS_H
#define ROTA_RUNTIME_COLLECTIVE_NCCL_NCCLMEMBERS_H

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <utility>

namespace rota {

/// Bytes that one member sends to another, until they are read.
struct NcclMessage {
  const char *data;
  size_t bytes;
  int form = 0; // see MemberTransfer
  bool isRead = false;
};

/// A send or a receive of a member.
struct MemberTransfer {
  int peer;
  const char *source; // null: receives
  char *destination;
  size_t bytes;
  int form = 0; // on which both sides have to agree, where that is checked
  std::shared_ptr<NcclMessage> message = nullptr; // that was sent
  bool isOver = false;
};

/// The members' common part of a communicator, from which Self derives.
template <typename Self> struct NcclMembers {
  int size = 0;
  std::map<std::pair<int, int>, std::deque<std::shared_ptr<NcclMessage>>> mail;
  // The present rendezvous of all members: (color, key) of a split.
  std::map<int, std::pair<int, int>> arrived;
  std::map<int, std::shared_ptr<Self>> parts; // parts of a split, by color
  std::map<int, int> numbers; // numbers of the members in their parts
  int64_t generation = 0;     // rendezvous that have ended
  bool hasLost = false;       // a member, which has aborted

  /// Arrives at the rendezvous, which ends when all are there: `body` then
  /// runs, once. Returns whether it has.
  bool arrive(int rank, std::pair<int, int> value,
              const std::function<void()> &body) {
    arrived[rank] = value;
    if (static_cast<int>(arrived.size()) < size)
      return false;
    body();
    arrived.clear();
    ++generation;
    return true;
  }

  /// Makes the parts of a split at which all members have arrived.
  void divide() {
    parts.clear();
    for (auto [rank, value] : arrived) {
      std::shared_ptr<Self> &part = parts[value.first];
      if (!part)
        part = std::make_shared<Self>();
      ++part->size;
      numbers[rank] = value.second;
    }
  }

  /// Does what a transfer of member `own` can do now, and returns whether it is
  /// over. check(message) is called with what a receive gets.
  template <typename Check>
  bool advance(int own, MemberTransfer &transfer, Check check) {
    if (transfer.isOver)
      return true;
    if (transfer.source) {
      if (!transfer.message) {
        transfer.message = std::make_shared<NcclMessage>(
            transfer.source, transfer.bytes, transfer.form);
        mail[{own, transfer.peer}].push_back(transfer.message);
      }
      return transfer.isOver = transfer.message->isRead;
    }
    auto &incoming = mail[{transfer.peer, own}];
    if (incoming.empty())
      return false;
    NcclMessage &message = *incoming.front();
    check(message);
    std::memcpy(transfer.destination, message.data,
                std::min(transfer.bytes, message.bytes));
    message.isRead = true;
    incoming.pop_front();
    return transfer.isOver = true;
  }
};

} // namespace rota

#endif // ROTA_RUNTIME_COLLECTIVE_NCCL_NCCLMEMBERS_H
