// SPDX-License-Identifier: Apache-2.0
#include "runtime/metrics/StepNumbers.h"

#include "runtime/text/Text.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace rota {

std::string clockText(double seconds) {
  auto total = static_cast<int64_t>(std::max(0.0, seconds) + 0.5);
  int64_t hours = total / 3600, minutes = total / 60 % 60;
  return hours ? fmt::format("{}:{:02}:{:02}", hours, minutes, total % 60)
               : fmt::format("{}:{:02}", minutes, total % 60);
}

std::string textOf(NumberFormat format, double value) {
  switch (format) {
  case NumberFormat::Loss:
    return fmt::format("{:.4f}", value);
  case NumberFormat::Count:
    return grouped(std::llround(value));
  case NumberFormat::Percent:
    return fmt::format("{:.1f} %", 100.0 * value);
  case NumberFormat::Clock:
    return clockText(value);
  case NumberFormat::Plain:
    break;
  }
  return fmt::format("{:.4g}", value);
}

} // namespace rota
