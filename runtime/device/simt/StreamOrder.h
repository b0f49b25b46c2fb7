// SPDX-License-Identifier: Apache-2.0
//
// The order that streams, events and waits of the host give to operations, as
// vector clocks: of two operations neither may come first, in whatever order
// the emulator ran them.
//
// A lane is a sequence of operations: a stream, or what one stream recorded
// into a graph. An operation comes after all of its lane before it, and after
// those that its clock counts: the clock has for each lane the number of its
// operations that come before.
#ifndef ROTA_RUNTIME_DEVICE_SIMT_STREAMORDER_H
#define ROTA_RUNTIME_DEVICE_SIMT_STREAMORDER_H

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace rota::simt {

/// Operations that come before, by lane. Null: none.
using Clock = std::shared_ptr<const std::vector<uint32_t>>;

/// The clock that has the operations of both.
Clock join(const Clock &one, const Clock &other);

struct Lane {
  std::string name; // "stream 2"
  uint32_t number = 0;
  uint32_t time = 0; // operations so far
  Clock before = {}; // operations of other lanes that come before the next
};

/// Names an operation, or a set of them, in shadows of memory. 0: none.
using OperationId = uint32_t;

class StreamOrder;

/// An operation that runs. A host thread that runs a part of it has a copy.
class OrderedOperation {
public:
  OrderedOperation() = default;

  OperationId id() const { return number; }
  /// Whether all that `earlier` names comes before this operation.
  bool isAfter(OperationId earlier) const {
    return earlier == lastChecked || check(earlier);
  }
  /// Whether `other` is this operation, or a set with it as the last one.
  bool isIn(OperationId other) const;
  /// The set of this operation and what `others` names.
  OperationId joinedWith(OperationId others) const;
  /// Whether all of the set but this operation come before.
  bool isAfterOthers(OperationId set) const;

private:
  friend class StreamOrder;
  bool check(OperationId earlier) const;

  StreamOrder *order = nullptr;
  OperationId number = 0;
  uint32_t lane = 0;
  Clock before;
  mutable OperationId lastChecked = 0; // comes before
};

/// One thread begins operations, one after another. Threads that run parts of
/// an operation may ask meanwhile.
class StreamOrder {
public:
  /// Without this nothing is noted: operations have no number and no order.
  void watch() { isWatching = true; }
  bool watches() const { return isWatching; }

  Lane makeLane(std::string name);
  /// The next operation of the lane.
  OrderedOperation begin(Lane &lane);
  /// What the running operation does: "copy of 64 bytes".
  void name(const OrderedOperation &operation, std::string what);
  void finish(const OrderedOperation &operation) {
    finished = operation.number;
  }
  /// The last operation that has ended. Numbers ascend.
  OperationId lastFinished() const { return finished; }

  /// All of the lane so far, and what came before it.
  Clock now(const Lane &lane) const;

  /// "copy of 64 bytes on stream 2".
  std::string describe(OperationId id) const;
  /// "stream 2", of the operation.
  const std::string &laneOf(OperationId id) const;

private:
  friend class OrderedOperation;
  struct Entry {
    uint32_t lane, time;
    std::string what;
  };
  /// An operation before these is not known any more, and counts as earlier.
  static constexpr size_t kMostEntries = 1 << 20;
  /// The bit of the ids of sets.
  static constexpr OperationId kSet = 1u << 31;

  const Entry *find(OperationId id) const;
  std::vector<OperationId> membersOf(OperationId id) const;

  std::atomic<bool> isWatching = false;
  std::vector<std::string> lanes; // names by number
  std::deque<Entry> entries;
  OperationId firstId = 1; // of `entries`
  std::atomic<OperationId> finished = 0;

  mutable std::mutex mutex; // guards the sets
  std::vector<std::vector<OperationId>> sets;
  std::map<std::pair<OperationId, OperationId>, OperationId> joined;
};

} // namespace rota::simt

#endif // ROTA_RUNTIME_DEVICE_SIMT_STREAMORDER_H
