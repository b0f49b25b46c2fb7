// SPDX-License-Identifier: Apache-2.0
//
// Facts that the members of a transfer must agree on, and how the transfers
// that they start are matched, where the ranks are threads of one process.
#ifndef ROTA_RUNTIME_COLLECTIVE_EXCHANGE_H
#define ROTA_RUNTIME_COLLECTIVE_EXCHANGE_H

#include "runtime/collective/Communicator.h"

#include <deque>
#include <memory>
#include <tuple>

namespace rota {

/// A collective of the group, or a message from sender to receiver. A message
/// from a rank to itself, a copy, has one member.
struct Exchange {
  Exchange(Stream stream, const Collective &collective, const RankGroup &group);
  Exchange(Stream stream, int sender, int receiver, int64_t bytes);

  Stream stream;
  bool isMessage = false;
  Collective collective; // for a message, only its size counts, in bytes
  RankGroup group;
  int64_t elementBytes = 1;

  size_t size() const { return group.ranks.size(); }
  /// The reason why another member's transfer does not match this one; empty
  /// when it does.
  std::string disagreement(const Exchange &other) const;
  /// "all-gather of [1, 64, 8] f32", "message of 256 bytes".
  std::string describe() const;
};

/// Transfers with one key belong together by their numbers.
using SequenceKey = std::tuple<Stream, bool, std::vector<int>>;
SequenceKey keyOf(const Exchange &exchange);

/// The transfers of one key for which some members are missing.
template <typename T> class Sequence {
public:
  /// Counts the next transfer of `member` among so many, and returns the place
  /// of the transfer that it belongs to: null where this member is the first.
  std::shared_ptr<T> &next(int member, size_t members) {
    started.resize(members);
    auto place = static_cast<size_t>(started[member]++ - first);
    if (place == open.size())
      open.emplace_back();
    return open[place];
  }
  /// The number of the transfer that was opened last.
  int64_t lastNumber() const {
    return first + static_cast<int64_t>(open.size()) - 1;
  }
  /// Forgets the oldest transfer, the first at which all members arrive.
  void removeFirst() {
    open.pop_front();
    ++first;
  }

private:
  std::deque<std::shared_ptr<T>> open;
  int64_t first = 0;            // number of the first open one
  std::vector<int64_t> started; // by member
};

} // namespace rota

#endif // ROTA_RUNTIME_COLLECTIVE_EXCHANGE_H
