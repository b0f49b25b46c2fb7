// SPDX-License-Identifier: Apache-2.0
#include "runtime/trace/FlightRecorder.h"
#include "runtime/trace/FlightWriter.h"

#include <csignal>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <unistd.h>

namespace rota {

namespace {

/// Recorders of this process. A signal handler reads them, so they are neither
/// in a container nor guarded by a lock.
std::atomic<const FlightRecorder *> recorders[kMostFlightRecorders];

/// The report of this process.
std::array<char, 4096> reportPath;
std::atomic<bool> isArmed{false}, isReportNew{false}, printsReport{false};

constexpr int kSignals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGQUIT};

void onSignal(int signal) {
  reportFlight();
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

} // namespace

FlightRecorder::FlightRecorder(const Program &program, int rank, int stage)
    : program(program), rank(rank), stage(stage) {
  for (auto &place : recorders) {
    const FlightRecorder *none = nullptr;
    if (place.compare_exchange_strong(none, this))
      return;
  }
}

FlightRecorder::~FlightRecorder() {
  for (auto &place : recorders) {
    const FlightRecorder *own = this;
    if (place.compare_exchange_strong(own, nullptr))
      return;
  }
}

int64_t FlightRecorder::now() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<int64_t>(time.tv_sec) * 1000000000 + time.tv_nsec;
}

FlightRecorder::Entry FlightRecorder::at(uint64_t number) const {
  const Slot &slot = slots[number % kEvents];
  uint64_t what = slot.what.load(std::memory_order_relaxed);
  // With the sign of its highest bit.
  auto value =
      static_cast<int64_t>(what << (64 - kValueBits)) >> (64 - kValueBits);
  return {slot.time.load(std::memory_order_relaxed),
          static_cast<FlightEvent>(what >> kValueBits), value};
}

FlightReport::FlightReport(const std::string &path, bool isNew, bool prints) {
  size_t length = std::min(path.size(), reportPath.size() - 1);
  std::memcpy(reportPath.data(), path.data(), length);
  reportPath[length] = 0;
  isReportNew = isNew;
  printsReport = prints;
  isArmed = true;
  for (int signal : kSignals) {
    struct sigaction old;
    // A sanitizer's handler, say, stays.
    if (sigaction(signal, nullptr, &old) == 0 && old.sa_handler == SIG_DFL)
      std::signal(signal, onSignal);
  }
}

FlightReport::~FlightReport() {
  isArmed = false;
  for (int signal : kSignals) {
    struct sigaction old;
    if (sigaction(signal, nullptr, &old) == 0 && old.sa_handler == onSignal)
      std::signal(signal, SIG_DFL);
  }
}

void reportFlight(int rank) {
  if (!isArmed.exchange(false))
    return;
  FlightList list;
  for (auto &place : recorders)
    if (const FlightRecorder *recorder = place.load())
      list.all[list.count++] = recorder;
  if (isReportNew)
    unlink(reportPath.data());
  int file = open(reportPath.data(),
                  O_WRONLY | O_CREAT | O_CLOEXEC |
                      (isReportNew ? O_EXCL | O_NOFOLLOW : O_TRUNC),
                  0666);
  bool isWritten = false;
  if (file >= 0) {
    isWritten = writeFlight(file, list);
    isWritten &= close(file) == 0;
  }
  if (printsReport)
    printFlight(STDERR_FILENO, list, rank, isWritten ? reportPath.data() : "");
}

} // namespace rota
