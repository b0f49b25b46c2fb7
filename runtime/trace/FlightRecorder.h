// SPDX-License-Identifier: Apache-2.0
//
// The last events of each rank of a process, for when its run ends badly. They
// are always recorded, in memory of a fixed size, without locks: an event costs
// a reading of the clock and two stores.
#ifndef ROTA_RUNTIME_TRACE_FLIGHTRECORDER_H
#define ROTA_RUNTIME_TRACE_FLIGHTRECORDER_H

#include <array>
#include <atomic>
#include <cstdint>
#include <string>

namespace rota {

struct Program;

/// An event and what its number means.
enum class FlightEvent : uint8_t {
  ActionBegin, // number of a stage's action; on a GPU, the action is asked for
  ActionEnd,
  TransferStart, // a message's or transfer's number
  WaitBegin,     // a message's or transfer's number: the rank waits for it
  WaitEnd,
  StepBegin, // the step's number
  StepEnd,
  OptimizerBegin, // 0
  OptimizerEnd,
  ValidationBegin, // the step before it
  ValidationEnd,
  CheckpointBegin, // the step before it
  CheckpointEnd,
  DeviceReached, // the action that the device reported last; -1: not known
  Failure,       // 0: the rank's thread got an exception
};

/// The events of one rank. Only its thread adds; any thread may read.
class FlightRecorder {
public:
  /// The recorder is known to reportFlight while it lives. `program` must
  /// outlive it.
  FlightRecorder(const Program &program, int rank, int stage);
  ~FlightRecorder();
  FlightRecorder(const FlightRecorder &) = delete;
  FlightRecorder &operator=(const FlightRecorder &) = delete;

  void add(FlightEvent event, int64_t value) {
    uint64_t number = count.load(std::memory_order_relaxed);
    Slot &slot = slots[number % kEvents];
    slot.time.store(now(), std::memory_order_relaxed);
    slot.what.store(static_cast<uint64_t>(event) << kValueBits |
                        (static_cast<uint64_t>(value) & kValueMask),
                    std::memory_order_relaxed);
    count.store(number + 1, std::memory_order_release);
  }

  /// Events that are kept.
  static constexpr uint64_t kEvents = 1024;

  struct Entry {
    int64_t time; // nanoseconds of a clock that all processes of a machine have
    FlightEvent event;
    int64_t value;
  };
  /// Events so far, and the n-th of them; the last kEvents are there.
  uint64_t size() const { return count.load(std::memory_order_acquire); }
  Entry at(uint64_t number) const;

  /// Nanoseconds of the clock of events.
  static int64_t now();

  const Program &program;
  const int rank, stage;

private:
  static constexpr int kValueBits = 56;
  static constexpr uint64_t kValueMask = (uint64_t(1) << kValueBits) - 1;
  struct Slot {
    std::atomic<int64_t> time{0};
    std::atomic<uint64_t> what{0};
  };
  std::array<Slot, kEvents> slots;
  std::atomic<uint64_t> count{0};
};

/// While one lives, the process reports its recorders when its run fails, and
/// when it gets SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT or SIGQUIT, of which
/// it then ends. At most one in a process.
class FlightReport {
public:
  /// `path`: the file to write. If `isNew`, what has that name is not written
  /// to, which a folder of all users needs: it might be another user's link.
  /// Prints the last events too if `prints`.
  FlightReport(const std::string &path, bool isNew, bool prints);
  ~FlightReport();
  FlightReport(const FlightReport &) = delete;
  FlightReport &operator=(const FlightReport &) = delete;
};

/// Once for each FlightReport, and not at all without one: writes the events of
/// all recorders as a trace for Perfetto, and prints the last five of `rank`,
/// if it is a rank of this process, and of those that have been silent
/// longest: four ranks in all. Callable from any thread and from signal
/// handlers: it takes no memory and no lock.
void reportFlight(int rank = -1);

} // namespace rota

#endif // ROTA_RUNTIME_TRACE_FLIGHTRECORDER_H
