// SPDX-License-Identifier: Apache-2.0
#include "lowering/report/AxisTransfers.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <tuple>

namespace rota {

std::vector<AxisTransfers>
sumOverAxes(const std::vector<TransferReport> &reports) {
  std::map<std::string, AxisTransfers> sums;
  for (const TransferReport &report : reports) {
    std::string axes = report.facts.axes.empty() ? "host" : report.facts.axes;
    AxisTransfers &sum = sums[axes];
    sum.axes = axes;
    sum.bytes += report.bytes;
    sum.seconds += report.seconds;
    sum.exposed += report.exposed;
  }
  std::vector<AxisTransfers> sorted;
  for (auto &[axes, sum] : sums)
    sorted.push_back(std::move(sum));
  llvm::sort(sorted, [](const auto &a, const auto &b) {
    return std::tie(b.exposed, a.axes) < std::tie(a.exposed, b.axes);
  });
  return sorted;
}

std::string describeAxisTransfers(const std::vector<AxisTransfers> &sums) {
  if (sums.empty())
    return "";
  size_t width = 4;
  for (const AxisTransfers &sum : sums)
    width = std::max(width, sum.axes.size());
  std::string text =
      fmt::format("{:<{}}  {:>12}  {:>12}  {:>10}  {:>8}\n", "axes", width,
                  "MiB", "ms", "exposed ms", "hidden");
  for (const AxisTransfers &sum : sums)
    text += fmt::format(
        "{:<{}}  {:>12.2f}  {:>12.3f}  {:>10.3f}  {:>6.1f} %\n", sum.axes,
        width, static_cast<double>(sum.bytes) / (1 << 20), 1e3 * sum.seconds,
        1e3 * sum.exposed, 100 * sum.hiddenShare());
  return text;
}

} // namespace rota
