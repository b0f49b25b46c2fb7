// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/cuda/MeasureAlgorithms.h"
#include "runtime/device/Device.h"

#include <algorithm>
#include <fmt/format.h>
#include <limits>
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

  /// Waits for all work that the stream was asked for.
  void wait() {
    end.record(stream);
    checkDriver(driver, driver.synchronizeEvent(end.get()),
                "cuEventSynchronize");
  }

  /// Milliseconds of one run, as the mean of `runs`; nothing when one is
  /// refused, with the reason in `status`.
  template <typename Start>
  std::optional<float> measure(int runs, const Start &start,
                               BlasStatus &status) {
    begin.record(stream);
    for (int run = 0; run < runs; ++run)
      if (BlasStatus result = start(); result != kBlasSuccess) {
        wait(); // a failure of the GPU is no refusal
        status = result;
        return std::nullopt;
      }
    wait();
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
  throw DeviceError(fmt::format("{}: {} ({})", what, text, result));
}

namespace {
struct Contender {
  size_t number;
  int runs = 1; // in a round
  float milliseconds = std::numeric_limits<float>::infinity();
  bool isRefused = false;
};
} // namespace

Fastest findFastest(const DriverApi &driver, const std::string &name,
                    size_t count,
                    const std::function<BlasStatus(size_t)> &start,
                    StreamHandle stream) {
  Fastest found;
  Stopwatch stopwatch(driver, stream);
  stopwatch.wait(); // a failure of earlier work is not one of this work
  std::vector<Contender> contenders;
  for (size_t i = 0; i < count; ++i)
    contenders.push_back({i});
  auto run = [&](Contender &contender) {
    try {
      auto time = stopwatch.measure(
          contender.runs, [&] { return start(contender.number); },
          found.status);
      contender.isRefused = !time;
      if (time)
        contender.milliseconds = std::min(contender.milliseconds, *time);
    } catch (const DeviceError &error) {
      throw DeviceError(fmt::format(
          "{}: measuring {} of {}: {}; with ROTA_ALGORITHM_FILE= nothing is "
          "measured",
          name, contender.number + 1, count, error.what()));
    }
  };
  auto runAll = [&] {
    for (Contender &contender : contenders)
      run(contender);
    found.refused +=
        std::erase_if(contenders, [](auto &c) { return c.isRefused; });
  };
  runAll(); // loads code
  for (Contender &contender : contenders) {
    float runs = kRoundMilliseconds / std::max(contender.milliseconds, 1e-3f);
    contender = {contender.number, std::clamp(int(runs), 1, kMostRuns)};
  }
  for (int round = 0; round < kRounds; ++round)
    runAll();
  auto fastest =
      std::ranges::min_element(contenders, {}, &Contender::milliseconds);
  if (fastest != contenders.end()) {
    found.number = fastest->number;
    found.first = contenders.front().number;
  }
  return found;
}

} // namespace rota::cuda
