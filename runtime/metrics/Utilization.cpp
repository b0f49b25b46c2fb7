// SPDX-License-Identifier: Apache-2.0
#include "runtime/metrics/Utilization.h"

#include <algorithm>

namespace rota {

namespace {

struct KnownDevice {
  std::string_view name; // the beginning of the driver's
  double f32, tf32, bf16;
};

/// From NVIDIA's data sheets of A100, H100 and H200, without sparsity. The
/// first that fits counts.
constexpr KnownDevice kDevices[] = {
    {"NVIDIA A100", 19.5e12, 156e12, 312e12},
    {"NVIDIA H100 PCIe", 51e12, 378e12, 756e12},
    {"NVIDIA H100 80GB HBM3", 67e12, 494.7e12, 989.4e12},
    {"NVIDIA H200", 67e12, 494.7e12, 989.4e12},
};

} // namespace

Arithmetic arithmeticOf(const Program &program, bool allowTf32) {
  int64_t bf16 = 0, f32 = 0;
  for (const Parameter &parameter : program.parameters)
    (parameter.compute == ElementType::BF16 ? bf16 : f32) +=
        elementCount(parameter) *
        std::max<int64_t>(1, static_cast<int64_t>(parameter.layers.size()));
  if (bf16 > f32)
    return Arithmetic::BF16;
  return allowTf32 ? Arithmetic::TF32 : Arithmetic::F32;
}

std::optional<double> knownPeakFlops(std::string_view device,
                                     Arithmetic arithmetic) {
  for (const KnownDevice &known : kDevices)
    if (device.starts_with(known.name))
      return arithmetic == Arithmetic::BF16   ? known.bf16
             : arithmetic == Arithmetic::TF32 ? known.tf32
                                              : known.f32;
  return std::nullopt;
}

double modelFlopsUtilization(const Program &program, double tokensPerSecond,
                             double peakFlops) {
  return program.flopsPerToken * tokensPerSecond / peakFlops;
}

} // namespace rota
