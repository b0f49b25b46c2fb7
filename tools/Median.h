// SPDX-License-Identifier: Apache-2.0
//
// The statistic of measured times.
#ifndef ROTA_TOOLS_MEDIAN_H
#define ROTA_TOOLS_MEDIAN_H

#include <algorithm>
#include <cstddef>
#include <vector>

namespace rota {

/// The median of samples, of which there is one at least: of an even number,
/// the larger one of the two in the middle.
inline double median(std::vector<double> samples) {
  auto middle = samples.begin() + std::ptrdiff_t(samples.size() / 2);
  std::nth_element(samples.begin(), middle, samples.end());
  return *middle;
}

} // namespace rota

#endif // ROTA_TOOLS_MEDIAN_H
