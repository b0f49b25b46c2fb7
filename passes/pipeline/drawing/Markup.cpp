// SPDX-License-Identifier: Apache-2.0
#include "passes/pipeline/drawing/Markup.h"

#include <algorithm>
#include <cmath>

namespace rota {

std::string escaped(std::string_view text) {
  std::string result;
  for (char c : text)
    if (c == '<')
      result += "&lt;";
    else if (c == '>')
      result += "&gt;";
    else if (c == '&')
      result += "&amp;";
    else if (c == '"')
      result += "&quot;";
    else
      result += c;
  return result;
}

std::vector<double> roundTicks(double low, double high, int count) {
  double span = high - low;
  if (!(span > 1e-12 * std::max(std::abs(low), std::abs(high))) ||
      !std::isfinite(span))
    return {low};
  double power = std::pow(10.0, std::floor(std::log10(span / count)));
  double step = power;
  for (double factor : {1.0, 2.0, 5.0, 10.0})
    if (span / (step = factor * power) <= count)
      break;
  std::vector<double> ticks;
  double first = std::ceil(low / step - 1e-9);
  for (int i = 0; i <= count && (first + i) * step <= high + 1e-9 * span; ++i)
    ticks.push_back((first + i) * step + 0.0); // no -0
  return ticks;
}

} // namespace rota
