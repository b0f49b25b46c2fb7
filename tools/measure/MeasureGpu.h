// SPDX-License-Identifier: Apache-2.0
//
// The GPUs of this host as a machine of the planner, measured with the kernels,
// products and collectives of trainers.
#ifndef ROTA_TOOLS_MEASURE_MEASUREGPU_H
#define ROTA_TOOLS_MEASURE_MEASUREGPU_H

#include "ir/rota/cost/Machine.h"
#include "runtime/program/DeviceKind.h"

#include <functional>

namespace rota {

struct GpuRequest {
  /// The emulated GPU has small sizes, and one of its seconds counts as 1 ms:
  /// such a machine is for tests.
  DeviceKind device = DeviceKind::Cuda;
  double seconds = 50; // that the measurement takes, about
  std::string version; // of rota, for the sources
  /// A described machine, for what one host cannot measure: the peaks of data
  /// sheets, and the levels of the network beyond this host's GPUs.
  std::optional<mlir::rota::Machine> described;
  /// Called before each part, with the share of the time that has passed.
  std::function<void(const std::string &part, double share)> progress;
};

/// The reason why there is no measurement.
struct GpuFailure {
  std::string message;
  bool isInput = false; // no such GPU, driver or library, not failed work
};

/// Measures. Nothing, with the reason in `failure`, where that fails.
std::optional<mlir::rota::Machine> measureGpu(const GpuRequest &request,
                                              GpuFailure &failure);

} // namespace rota

#endif // ROTA_TOOLS_MEASURE_MEASUREGPU_H
