// SPDX-License-Identifier: Apache-2.0
//
// Tokens per second of a run, over about the last log interval.
#ifndef ROTA_RUNTIME_TRAIN_REPORT_THROUGHPUT_H
#define ROTA_RUNTIME_TRAIN_REPORT_THROUGHPUT_H

#include "runtime/metrics/Utilization.h"

#include <algorithm>
#include <optional>

namespace rota {

class Throughput {
public:
  /// `peak`: operations per second of all devices, where known.
  Throughput(const Program &program, int64_t stepTokens, int64_t logInterval,
             std::optional<double> peak)
      : program(program), stepTokens(stepTokens), logInterval(logInterval),
        peak(peak) {}

  /// A step that took so long, without validation.
  void add(double seconds) {
    double weight =
        2.0 / (1.0 + static_cast<double>(std::min(++steps, logInterval)));
    stepSeconds += weight * (seconds - stepSeconds);
  }
  double tokensPerSecond() const {
    return static_cast<double>(stepTokens) / stepSeconds;
  }
  /// MFU, where the peak is known.
  std::optional<double> utilization() const {
    if (!peak || program.flopsPerToken <= 0.0)
      return std::nullopt;
    return modelFlopsUtilization(program, tokensPerSecond(), *peak);
  }

private:
  const Program &program;
  const int64_t stepTokens, logInterval;
  const std::optional<double> peak;
  int64_t steps = 0;
  double stepSeconds = 0.0; // a moving mean
};

} // namespace rota

#endif // ROTA_RUNTIME_TRAIN_REPORT_THROUGHPUT_H
