// SPDX-License-Identifier: Apache-2.0
//
// The verb machine: lists the machines that plans know, shows one, measures
// this host.
#include "runtime/files/Terminal.h"
#include "tools/rota/CheckInputs.h"
#include "tools/rota/Compile.h"
#include "tools/rota/Verbs.h"

#include "runtime/device/Cores.h"
#include "runtime/files/Streams.h"
#include "runtime/files/WriteFile.h"
#include "runtime/program/DeviceTraits.h"
#include "runtime/text/Text.h"
#include "tools/measure/MeasureGpu.h"
#include "tools/measure/MeasureHost.h"
#include "tools/planner/Machines.h"

#include <filesystem>
#include <fmt/format.h>
#include <unistd.h>

using mlir::rota::Machine;
using mlir::rota::MachineNumber;
using mlir::rota::NetworkLevel;
using mlir::rota::TypeRates;

namespace rota {
namespace {

/// "989.4 T", "3.35 T", "450 G", "3.4 u": a number with the prefix of its size.
std::string prefixed(double value) {
  struct Prefix {
    double size;
    const char *name;
  };
  constexpr Prefix prefixes[] = {{1e15, "P"}, {1e12, "T"}, {1e9, "G"},
                                 {1e6, "M"},  {1e3, "k"},  {1, ""},
                                 {1e-3, "m"}, {1e-6, "u"}, {1e-9, "n"}};
  for (const Prefix &prefix : prefixes)
    if (value >= prefix.size)
      return fmt::format("{:.4g} {}", value / prefix.size, prefix.name);
  return "0 ";
}

/// Numbers with a unit of their own have a prefix; shares and counts have none.
std::string valueText(const MachineNumber &number) {
  for (auto [unit, symbol] :
       {std::pair("FLOP/s", "FLOP/s"), std::pair("bytes a second", "B/s"),
        std::pair("bytes", "B"), std::pair("seconds", "s")})
    if (number.unit == unit)
      return prefixed(number.value) + symbol;
  return fmt::format("{:.6g}", number.value);
}

/// "8 x 450 GB/s NVLink 4, 50 GB/s InfiniBand NDR".
std::string networkText(const Machine &machine) {
  std::string text;
  for (const NetworkLevel &level : machine.network)
    text += fmt::format("{}{}{}B/s {}", text.empty() ? "" : ", ",
                        level.devices > 0 ? grouped(level.devices) + " x "
                                          : std::string(),
                        prefixed(level.bytesPerSecond), level.name);
  return text;
}

std::string peakText(const Machine &machine) {
  for (const char *type : {"bf16", "f16", "f32", "f64"})
    if (auto found = machine.types.find(type); found != machine.types.end())
      return fmt::format("{} {}FLOP/s", type,
                         prefixed(found->second.flopsPerSecond));
  return prefixed(machine.rowFlopsPerSecond) + "FLOP/s";
}

std::string memoryText(const Machine &machine) {
  return machine.memoryBytes > 0 ? prefixed(machine.memoryBytes) + "B" : "-";
}

int listMachines(bool json) {
  std::string error;
  if (!json)
    fmt::print("{:<18} {:<19} {:<9} {}\n", "machine", "peak", "memory",
               "network, a device");
  for (const std::string &name : machineNames()) {
    auto found = findMachine(name, error);
    if (!found) {
      fmt::print(stderr, "error: {}: {}\n", name, error);
      return kExitRunFailed;
    }
    if (json)
      fmt::print("{}\n", name);
    else
      fmt::print("{:<18} {:<19} {:<9} {}\n", name, peakText(found->machine),
                 memoryText(found->machine), networkText(found->machine));
  }
  return kExitSuccess;
}

bool isFitted(const Machine &machine, const std::string &path) {
  return std::find(machine.fitted.begin(), machine.fitted.end(), path) !=
         machine.fitted.end();
}

/// Whether `number` is of a measured product, which is a row of a table.
bool isOfProduct(const MachineNumber &number) {
  return number.path.find("products[") != std::string::npos ||
         number.path.find("weight_gradients[") != std::string::npos;
}

void showProducts(const std::string &title,
                  const std::vector<mlir::rota::MeasuredProduct> &products) {
  if (products.empty())
    return;
  fmt::print("\n{}\n{:>21} {:>6} {:>6}\n", title, "m", "n", "k");
  for (const mlir::rota::MeasuredProduct &product : products)
    fmt::print("{:>21} {:>6} {:>6}  {}FLOP/s\n", product.size.m, product.size.n,
               product.size.k, prefixed(product.flopsPerSecond));
}

/// A line a number, then the sources by their numbers.
void showNumbers(const Machine &machine) {
  std::vector<std::string> sources;
  std::vector<MachineNumber> numbers = machine.numbers();
  std::erase_if(numbers, isOfProduct);
  size_t width = 36;
  for (const MachineNumber &number : numbers)
    width = std::max(width, number.path.size());
  for (const MachineNumber &number : numbers) {
    std::string source = machine.sourceOf(number.path), reference;
    if (!source.empty()) {
      auto place = std::find(sources.begin(), sources.end(), source);
      reference = fmt::format("  [{}]", place - sources.begin() + 1);
      if (place == sources.end())
        sources.push_back(source);
    }
    fmt::print("{:<{}} {:>15}{}{}\n", number.path, width, valueText(number),
               isFitted(machine, number.path) ? "*" : " ", reference);
  }
  if (!machine.fitted.empty())
    fmt::print("\n* fitted on published runs\n");
  if (!sources.empty())
    fmt::print("\n");
  for (size_t i = 0; i < sources.size(); ++i)
    fmt::print("[{}] {}\n", i + 1, sources[i]);
}

int showMachine(const RunOptions &options) {
  std::string error;
  auto found = findMachine(options.machine, error);
  if (!found) {
    fmt::print(stderr, "error: {}\n", error);
    return kExitBadInput;
  }
  if (options.json || !options.output.empty())
    return writeOutput(options.output, found->text);
  const Machine &machine = found->machine;
  fmt::print("{}: {}\n\n", machine.name, machine.description);
  showNumbers(machine);
  for (const auto &[type, rates] : machine.types) {
    showProducts(type + " products", rates.products);
    showProducts(type + " weight gradients", rates.weightGradients);
    showProducts(type + " products, each divided among all cores",
                 rates.sharedProducts);
  }
  return kExitSuccess;
}

/// A line that the next one replaces on a terminal.
void showProgress(const std::string &part, double share) {
  if (isatty(STDERR_FILENO))
    fmt::print(stderr, "\r\033[Kmeasuring {}: {:.0f} %", part, 100 * share);
  else
    fmt::print(stderr, "measuring {}\n", part);
  std::fflush(stderr);
}

void endProgress() {
  if (isatty(STDERR_FILENO))
    fmt::print(stderr, "\r\033[K");
}

int measureGpus(const RunOptions &options) {
  GpuRequest request;
  request.device = options.compiler.target.device;
  request.seconds = options.measureSeconds;
  request.version = ROTA_VERSION;
  request.progress = showProgress;
  if (!options.machine.empty()) {
    std::string error;
    auto found = findMachine(options.machine, error);
    if (!found)
      return reportBadInput("'machine': " + error);
    request.described = found->machine;
  }
  GpuFailure failure;
  auto machine = measureGpu(request, failure);
  endProgress();
  if (machine)
    return writeOutput(options.output, machine->write());
  fmt::print(stderr, "error: {}\n", failure.message);
  return failure.isInput ? kExitBadInput : kExitRunFailed;
}

int measureMachine(const RunOptions &options) {
  if (std::string error;
      !options.output.empty() && !checkOutput(options.output, error))
    return reportBadInput(error);
  if (traitsOf(options.compiler.target.device).isGpu)
    return measureGpus(options);
  if (!options.machine.empty())
    return reportBadInput("'machine': expected 'device' cuda beside it: a host "
                          "measures all of its numbers");
  HostRequest request;
  request.seconds = options.measureSeconds;
  request.cores = availableCores();
  request.version = ROTA_VERSION;
  request.progress = showProgress;
  std::string error;
  auto measured = measureHost(request, error);
  endProgress();
  if (!measured) {
    fmt::print(stderr, "error: {}\n", error);
    return kExitRunFailed;
  }
  if (measured->freeShare < 0.95)
    fmt::print(stderr,
               "warning: other programs took {:.0f} % of the cores' time: "
               "measure again when they are idle\n",
               100 * (1 - measured->freeShare));
  fmt::print(stderr,
             "speed of the host: the quickest tenth of the measurement took "
             "{:.0f} % of the median time, which the file has\n",
             100 * measured->steadiness);
  if (std::filesystem::exists("/dev/nvidia0") ||
      std::filesystem::exists("/dev/kfd"))
    fmt::print(stderr, "note: this host has a GPU, which is not measured; "
                       "--device cuda measures NVIDIA's\n");
  return writeOutput(options.output, measured->machine.write());
}

} // namespace

int runMachine(const RunOptions &options) {
  if (options.action == "measure")
    return measureMachine(options);
  if (options.action == "show")
    return showMachine(options);
  if (!options.output.empty())
    return reportBadInput("'output': expected show or measure, which write a "
                          "machine's file, got list");
  return listMachines(options.json);
}

} // namespace rota
