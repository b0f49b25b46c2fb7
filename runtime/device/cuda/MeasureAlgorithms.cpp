// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/cuda/MeasureAlgorithms.h"
#include "runtime/Error.h"

#include <algorithm>
#include <fmt/format.h>
#include <limits>
#include <optional>
#include <vector>

namespace rota::cuda {
namespace {

/// Each algorithm runs once to warm up. Then, in each round, each runs for
/// about so long; its time is the least of all rounds.
constexpr int kRounds = 3;
constexpr float kRoundMilliseconds = 2.0f;
constexpr int kMostRuns = 20;

class Event {
public:
  explicit Event(const DriverApi &driver) : driver(driver) {
    checkDriver(driver, driver.createEvent(&event, kTimingEvent),
                "cuEventCreate");
  }
  ~Event() { driver.destroyEvent(event); }
  Event(const Event &) = delete;
  Event &operator=(const Event &) = delete;
  EventHandle get() const { return event; }

  void record(StreamHandle stream) {
    checkDriver(driver, driver.recordEvent(event, stream), "cuEventRecord");
  }

private:
  const DriverApi &driver;
  EventHandle event = nullptr;
};

class Stopwatch {
public:
  Stopwatch(const DriverApi &driver, StreamHandle stream)
      : driver(driver), stream(stream), begin(driver), end(driver) {}

  /// Milliseconds of one run, as the mean of `runs`; nothing when refused.
  template <typename Start>
  std::optional<float> measure(int runs, const Start &start) {
    begin.record(stream);
    for (int run = 0; run < runs; ++run)
      if (start() != kBlasSuccess)
        return std::nullopt;
    end.record(stream);
    checkDriver(driver, driver.synchronizeEvent(end.get()),
                "cuEventSynchronize");
    float milliseconds = 0.0f;
    checkDriver(driver,
                driver.elapsedTime(&milliseconds, begin.get(), end.get()),
                "cuEventElapsedTime");
    return milliseconds / float(runs);
  }

private:
  const DriverApi &driver;
  StreamHandle stream;
  Event begin, end;
};

} // namespace

void checkDriver(const DriverApi &driver, Result result, const char *what) {
  if (result == kSuccess)
    return;
  const char *text = nullptr;
  if (driver.errorText(result, &text) != kSuccess || !text)
    text = "unknown error";
  throw RunError(fmt::format("{}: {} ({})", what, text, result));
}

size_t findFastest(const DriverApi &driver, size_t count,
                   const std::function<BlasStatus(size_t)> &start,
                   StreamHandle stream) {
  struct Contender {
    size_t index;
    int runs; // runs per round
    float milliseconds = std::numeric_limits<float>::infinity();
  };
  Stopwatch stopwatch(driver, stream);
  auto measure = [&](size_t index, int runs) {
    return stopwatch.measure(runs, [&] { return start(index); });
  };
  std::vector<Contender> contenders;
  for (size_t i = 0; i < count; ++i) {
    if (auto time = measure(i, 1)) {
      float runs = kRoundMilliseconds / std::max(*time, 1e-3f);
      contenders.push_back({i, std::clamp(int(runs), 1, kMostRuns)});
    }
  }
  for (int round = 0; round < kRounds; ++round)
    for (Contender &contender : contenders)
      if (auto time = measure(contender.index, contender.runs))
        contender.milliseconds = std::min(contender.milliseconds, *time);
  auto fastest =
      std::ranges::min_element(contenders, {}, &Contender::milliseconds);
  return fastest == contenders.end() ? 0 : fastest->index;
}

} // namespace rota::cuda
