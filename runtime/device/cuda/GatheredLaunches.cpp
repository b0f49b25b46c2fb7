// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/cuda/GatheredLaunches.h"

#include <algorithm>
#include <cstring>

namespace rota::cuda {

int64_t LaunchTable::trips() const {
  int64_t trips = 0;
  while ((int64_t(1) << trips) < count())
    ++trips;
  return trips;
}

void GatheredLaunches::add(const RotaGpuLaunch &launch,
                           void *const *arguments) {
  auto table =
      std::find_if(all.begin(), all.end(), [&](const LaunchTable &known) {
        return known.kernel == launch.table;
      });
  if (table == all.end()) {
    table = all.emplace(all.end());
    table->kernel = launch.table;
  }
  table->first.push_back(static_cast<int32_t>(table->blocks));
  table->blocks += launch.tableBlocks;
  table->rows.push_back(launch.tableRows);
  for (int64_t i = 0; i < launch.arguments; ++i)
    table->rows.push_back(reinterpret_cast<int64_t>(arguments[i]));
}

std::vector<char> GatheredLaunches::layOut() {
  std::vector<char> bytes;
  auto append = [&](const auto &values) {
    constexpr size_t kAlignment = 16;
    bytes.resize((bytes.size() + kAlignment - 1) / kAlignment * kAlignment);
    size_t at = bytes.size(), size = values.size() * sizeof values[0];
    bytes.resize(at + size);
    if (size > 0)
      std::memcpy(bytes.data() + at, values.data(), size);
    return static_cast<int64_t>(at);
  };
  for (LaunchTable &table : all) {
    table.firstAt = append(table.first);
    table.rowsAt = append(table.rows);
  }
  sumsOffset = append(sums);
  return bytes;
}

} // namespace rota::cuda
