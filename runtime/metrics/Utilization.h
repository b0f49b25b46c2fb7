// SPDX-License-Identifier: Apache-2.0
//
// The share of a device's arithmetic that training uses.
#ifndef ROTA_RUNTIME_METRICS_UTILIZATION_H
#define ROTA_RUNTIME_METRICS_UTILIZATION_H

#include "runtime/program/Program.h"

#include <optional>
#include <string_view>

namespace rota {

/// The arithmetic that products are made in.
enum class Arithmetic { F32, TF32, BF16 };

/// The arithmetic of most of the program's parameters, by elements.
Arithmetic arithmeticOf(const Program &program, bool allowTf32);

/// Dense operations per second of one device, by the maker's data sheet: of
/// NVIDIA's A100, H100 (SXM, PCIe) and H200. Nothing for other names.
std::optional<double> knownPeakFlops(std::string_view device,
                                     Arithmetic arithmetic);

/// Model FLOPs utilization (Chowdhery et al. 2022, PaLM, appendix B): the
/// operations of the model's forward and backward pass, without
/// recomputation, over those that the devices could do in that time:
///   flopsPerToken * tokensPerSecond / peakFlops
/// with the peak of all devices together.
double modelFlopsUtilization(const Program &program, double tokensPerSecond,
                             double peakFlops);

} // namespace rota

#endif // ROTA_RUNTIME_METRICS_UTILIZATION_H
