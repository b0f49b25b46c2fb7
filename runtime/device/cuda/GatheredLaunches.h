// SPDX-License-Identifier: Apache-2.0
//
// Launches that become rows of tables: Device::launchTogether on a GPU.
#ifndef ROTA_RUNTIME_DEVICE_CUDA_GATHEREDLAUNCHES_H
#define ROTA_RUNTIME_DEVICE_CUDA_GATHEREDLAUNCHES_H

#include "runtime/Abi.h"
#include "runtime/device/cuda/ServiceKernels.h"

#include <vector>

namespace rota::cuda {

/// The launches of one kernel for tables, as RotaGpuLaunch::table says.
struct LaunchTable {
  const RotaGpuLaunch *kernel = nullptr;
  std::vector<int32_t> first; // by launch
  std::vector<int64_t> rows;  // by launch: its rows, then its arguments
  int64_t blocks = 0;
  // Offsets of both in the bytes of all tables.
  int64_t firstAt = 0, rowsAt = 0;

  int64_t count() const { return static_cast<int64_t>(first.size()); }
  /// The least number with 2^trips >= count.
  int64_t trips() const;
};

class GatheredLaunches {
public:
  /// A launch that has a table.
  void add(const RotaGpuLaunch &launch, void *const *arguments);
  /// A sum of what launches write.
  void add(const SumRow &sum) { sums.push_back(sum); }

  /// Fixes all offsets and returns the bytes of all tables, which begin at a
  /// multiple of 16.
  std::vector<char> layOut();

  /// A table for each kernel, in the order of the first launches.
  const std::vector<LaunchTable> &tables() const { return all; }
  int64_t sumCount() const { return static_cast<int64_t>(sums.size()); }
  int64_t sumsAt() const { return sumsOffset; }

private:
  std::vector<LaunchTable> all;
  std::vector<SumRow> sums;
  int64_t sumsOffset = 0;
};

} // namespace rota::cuda

#endif // ROTA_RUNTIME_DEVICE_CUDA_GATHEREDLAUNCHES_H
