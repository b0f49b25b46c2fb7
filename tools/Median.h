// SPDX-License-Identifier: Apache-2.0
//
// Statistics of measured times.
#ifndef ROTA_TOOLS_MEDIAN_H
#define ROTA_TOOLS_MEDIAN_H

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace rota {

/// The least of samples, of which there is one at least, that more than `share`
/// of them do not exceed.
inline double quantile(std::vector<double> samples, double share) {
  auto place = samples.begin() +
               std::ptrdiff_t(share * static_cast<double>(samples.size()));
  std::nth_element(samples.begin(), place, samples.end());
  return *place;
}

/// The median of samples, of which there is one at least: of an even number,
/// the larger one of the two in the middle.
inline double median(std::vector<double> samples) {
  return quantile(std::move(samples), 0.5);
}

} // namespace rota

#endif // ROTA_TOOLS_MEDIAN_H
