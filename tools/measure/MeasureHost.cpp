// SPDX-License-Identifier: Apache-2.0
//
// The parts of a measurement in order, and their sources. Compiled with
// exceptions, which do not leave this file.
#include "tools/measure/MeasureHost.h"
#include "runtime/device/cpu/OneDnn.h"

#include <algorithm>
#include <ctime>
#include <exception>
#include <fmt/format.h>
#include <fstream>

namespace rota {
namespace {

/// All is measured so often, at different times.
constexpr int kRounds = 5;

/// The name that the operating system gives the processor.
std::string processorName() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name"))
      if (size_t colon = line.find(": "); colon != line.npos)
        return line.substr(colon + 2);
  return "an unknown processor";
}

/// The source of each number.
std::map<std::string, std::string> sourcesOf(const std::string &measured) {
  std::string attention = ": fitted to 64 and 512 tokens, heads of 64, with "
                          "memory that no cache holds",
              rows = ": fitted to normalization, activations and loss";
  return {
      {"cores", "the cores that rota may run on"},
      {"units", "the cores: each multiplies alone"},
      {"types", measured + ": rotaGemm on all cores at once: y = x w^T and dx "
                           "= dy w; weight_gradients: dw += dy^T x; the peak "
                           "is the best of the products; shared_products: "
                           "each divided among all cores; grouped_slower: "
                           "rotaGroupedGemm beside products of equal size"},
      {"tiles", "not used: products have measured rates"},
      {"product_efficiency", "not used: products have measured rates"},
      {"depth", "not used: products have measured rates"},
      {"types.bf16.attention", measured + attention},
      {"types.f32.attention", measured + attention},
      {"types.bf16.row_flops_per_second", measured + rows},
      {"types.bf16.rows", measured + rows},
      {"types.f32.row_flops_per_second", measured + rows},
      {"types.f32.rows", measured + rows},
      {"attention", "as measured for f32"},
      {"row_flops_per_second", "as measured for f32"},
      {"launch_seconds", measured + ": a kernel of one row"},
      {"memory.bytes", "the memory that rota may use"},
      {"memory.bytes_per_second", measured + ": memcpy on all cores at once, "
                                             "read and written"},
      {"memory.efficiency", measured + ": a compiled addition of 96 MiB"},
      {"memory.cache", measured + ": compiled additions that are at least "
                                  "twice as fast as those in memory"},
      {"memory.copied_bytes_per_second", measured + ": memcpy"},
      {"memory.updated_bytes_per_second",
       measured + ": a compiled kernel whose results lie on three of its "
                  "operands, 16 MiB each"},
      {"host", measured + ": as between ranks"},
      {"network", measured + ": all-gather, reduce-scatter and messages "
                             "between ranks as threads"},
      {"network[0].efficiency", "part of the measured bandwidth"},
      {"network[0].slows_work",
       "transfers between threads are work of the same cores"}};
}

} // namespace

std::string today() {
  std::time_t now = std::time(nullptr);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%d", std::gmtime(&now));
  return text;
}

std::optional<HostMeasurement> measureHost(const HostRequest &request,
                                           std::string &error) try {
  loadOneDnn();
  HostMeasurement result;
  mlir::rota::Machine &machine = result.machine;
  machine = {};
  machine.name = "here";
  std::string measured =
      fmt::format("measured on {} by rota {}", today(), request.version);
  machine.description =
      fmt::format("{}, {} cores, {}", processorName(), request.cores, measured);
  machine.device = "cpu";
  machine.cores = request.cores;
  machine.units = request.cores;
  double free = freeShare(request.cores), done = 0;
  auto begin = [&](int round, const char *part, double share) {
    request.progress(
        fmt::format("{}, round {} of {}", part, round + 1, kRounds), done);
    done += share / kRounds;
    return share / kRounds * request.seconds;
  };
  HostRounds work(request.cores);
  for (int round = 0; round < kRounds; ++round) {
    measureMemory(machine, work, begin(round, "memory", 0.04));
    measureProducts(machine, work, begin(round, "products", 0.66));
    measureExperts(machine, work, begin(round, "products of experts", 0.04));
    if (!measureKernels(machine, work, begin(round, "kernels", 0.16))) {
      error = "a kernel cannot be compiled for this host";
      return std::nullopt;
    }
    measureMessages(machine, work, begin(round, "messages between ranks", 0.1));
  }
  result.steadiness = work.times.steadiness();
  result.freeShare = std::min(free, freeShare(request.cores));
  machine.sources = sourcesOf(measured);
  if (request.cores > 1) {
    machine.slowestCore = std::max(1.0, work.times.slowestCore());
    machine.sources["slowest_core"] =
        measured + ": a small product on all cores at once";
  }
  if (machine.sharedLaunch > 0)
    machine.sources["shared_launch_seconds"] =
        measured + ": kernels that all cores share, beside their part of the "
                   "same on each core alone";
  return result;
} catch (const std::exception &failure) {
  error = failure.what();
  return std::nullopt;
}

} // namespace rota
