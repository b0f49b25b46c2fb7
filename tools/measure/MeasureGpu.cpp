// SPDX-License-Identifier: Apache-2.0
//
// The parts of a GPU's measurement in order, and their sources. Compiled with
// exceptions, which do not leave this file.
#include "tools/measure/MeasureGpu.h"
#include "runtime/collective/nccl/Connect.h"
#include "runtime/program/DeviceTraits.h"
#include "tools/measure/GpuMessages.h"
#include "tools/measure/GpuWork.h"
#include "tools/measure/MeasureHost.h"
#include "tools/measure/OpSources.h"
#include "tools/measure/Products.h"

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/MLIRContext.h"

#include <algorithm>
#include <exception>
#include <fmt/format.h>

namespace rota {
namespace {

using mlir::rota::Machine;
using mlir::rota::NetworkLevel;
using mlir::rota::ProductSize;
using mlir::rota::TypeRates;

constexpr std::pair<const char *, int32_t> kTypes[] = {{"bf16", ROTA_BF16},
                                                       {"f32", ROTA_F32}};
/// Operations of each of two kinds that the arithmetic kernel does on a number:
/// so many that memory, which moves 16 bytes of it, takes a third of the time
/// of an H100's arithmetic.
constexpr int kArithmetic = 256;
/// The emulated GPU has two ranks, which share it.
constexpr int kEmulatedRanks = 2;
/// Share of the time that messages are measured in.
constexpr double kMessageShare = 0.1;

/// Operations that a multiprocessor does in a clock in dense products, of the
/// GPUs of data centers: NVIDIA's white papers on A100, H100 and Blackwell.
struct ClockRates {
  int architecture;
  double bf16, f32;
};
constexpr ClockRates kClockRates[] = {
    {80, 2048, 128}, {90, 4096, 256}, {100, 8192, 256}, {103, 8192, 256}};

/// The functions that are compiled, by their numbers in GpuOps.
struct Functions {
  size_t tiny = 0, arithmetic = 0;
  std::vector<size_t> rows;
  struct Attention {
    const char *type;
    size_t forward, backward;
    AttentionSizes sizes;
  };
  std::vector<Attention> attention;
};

/// False where a function cannot be compiled; the reason is printed.
bool addFunctions(bench::GpuOps &ops, const GpuSizes &sizes,
                  Functions &functions) {
  bool isGood = true;
  auto add = [&](const std::string &source) {
    isGood = isGood && ops.add(source, "f");
    return ops.functions().size() - 1;
  };
  bool small = sizes.isEmulated;
  functions.tiny = add(additionSource(1));
  functions.arithmetic =
      add(arithmeticSource(sizes.arithmeticRows, kArithmetic));
  RowSizes rows = small ? RowSizes{16, 64, 256} : RowSizes{8192, 4096, 32768};
  for (const std::string &source : rowSources("bf16", rows))
    functions.rows.push_back(add(source));
  // Without tensor cores, f32 is some ten times as slow.
  AttentionSizes half = {2, 4096, 16, 128}, single = {1, 2048, 8, 128},
                 little = {1, 48, 1, 64};
  for (auto [type, size] :
       {std::pair("bf16", half), std::pair("f32", single)}) {
    AttentionSizes own = small ? little : size;
    AttentionSources sources = attentionSources(type, own);
    size_t forward = add(sources.forward);
    functions.attention.push_back({type, forward, add(sources.backward), own});
  }
  return isGood;
}

/// What the driver says of the first GPU; 0 where it says nothing.
double attributeOf(const cuda::DriverApi &api, int attribute) {
  cuda::Ordinal first = 0;
  int value = 0;
  if (api.device(&first, 0) != cuda::kSuccess ||
      api.deviceAttribute(&value, attribute, first) != cuda::kSuccess)
    return 0;
  return value;
}

class GpuMeasurement {
public:
  GpuMeasurement(const GpuRequest &request, const bench::GpuOps &ops,
                 const Functions &functions, const GpuSizes &sizes,
                 llvm::ArrayRef<RotaGpuCode> code)
      : request(request), ops(ops), functions(functions), sizes(sizes),
        code(code.begin(), code.end()) {}

  Machine run() {
    machine.types.clear();
    {
      Devices devices = makeDevices(request.device, 1, code, {});
      setGpu(*devices.gpus.front());
      GpuWork work(*devices.ranks.front(), *devices.gpus.front(), ops, sizes,
                   request.seconds / GpuRequest().seconds);
      measureMemory(work);
      measureLaunches(work);
      measureRows(work);
      measureProducts(work);
      measureAttention(work);
    }
    measureNetwork();
    return machine;
  }

private:
  void begin(const char *part, double share) { request.progress(part, share); }
  void setGpu(cuda::CudaDevice &gpu);
  void measureMemory(GpuWork &work);
  void measureLaunches(GpuWork &work);
  void measureProducts(GpuWork &work);
  std::vector<TimedProduct> timeProducts(GpuWork &work, const char *name,
                                         int32_t type);
  void setPeak(const char *type, double reached);
  void measureRows(GpuWork &work);
  void measureAttention(GpuWork &work);
  void measureNetwork();

  const GpuRequest &request;
  const bench::GpuOps &ops;
  const Functions &functions;
  const GpuSizes sizes;
  std::vector<RotaGpuCode> code;
  Machine machine;
  std::string measured; // the begin of sources
  int architecture = 0, gpus = 1;
  double clock = 0; // of multiprocessors, a second
};

void GpuMeasurement::setGpu(cuda::CudaDevice &gpu) {
  const cuda::DriverApi &api = gpu.gpu().api();
  int version = 0;
  api.driverVersion(&version);
  api.deviceCount(&gpus);
  architecture = gpu.gpu().architecture();
  clock = 1e3 * attributeOf(api, cuda::kClockRate);
  measured = fmt::format(
      "measured on {}, {}, driver for CUDA {}.{}, by rota {}", gpu.name(),
      today(), version / 1000, version % 1000 / 10, request.version);
  machine.name = "here";
  machine.description = fmt::format("{} x {}, {}", gpus, gpu.name(), measured);
  machine.device = "cuda";
  machine.units = gpu.gpu().multiprocessors();
  machine.sources["units"] = measured + ": multiprocessors, as the driver says";
  machine.memoryBytes = double(gpu.memory().total);
  machine.sources["memory.bytes"] = measured + ": as the driver says";
  // Two transfers a clock.
  machine.memoryBytesPerSecond = 2e3 *
                                 attributeOf(api, cuda::kMemoryClockRate) *
                                 attributeOf(api, cuda::kMemoryBusWidth) / 8;
}

void GpuMeasurement::measureMemory(GpuWork &work) {
  begin("memory", 0);
  int64_t bytes = sizes.copiedBytes;
  machine.copiedPerSecond = double(bytes) / work.secondsOfCopy(bytes);
  machine.sources["memory.copied_bytes_per_second"] =
      fmt::format("{}: {} bytes from device to device", measured, bytes);
  bool isSaid = machine.memoryBytesPerSecond >= 2 * machine.copiedPerSecond;
  if (!isSaid)
    machine.memoryBytesPerSecond = 2 * machine.copiedPerSecond;
  machine.sources["memory.bytes_per_second"] =
      measured + (isSaid ? ": the memory's clock and width, as the driver says"
                         : ": copies from device to device, read and written");
  int64_t ofHost = sizes.hostBytes;
  double to = work.secondsOfHostCopy(ofHost, /*isToDevice=*/true),
         from = work.secondsOfHostCopy(ofHost, /*isToDevice=*/false),
         small = work.secondsOfHostCopy(/*bytes=*/4, /*isToDevice=*/true);
  machine.hostBytesPerSecond = double(ofHost) / std::max(to, from);
  machine.hostLatency = small;
  machine.sources["host"] = fmt::format(
      "{}: copies of {} bytes of pinned memory, {:.4g} GB/s to the GPU and "
      "{:.4g} GB/s from it, of which the slower one counts; latency: of 4 "
      "bytes",
      measured, ofHost, 1e-9 * double(ofHost) / to,
      1e-9 * double(ofHost) / from);
}

void GpuMeasurement::measureLaunches(GpuWork &work) {
  begin("launches", 0.1);
  double asked = work.secondsOfLaunch(functions.tiny, /*isRecorded=*/false);
  machine.launch = work.secondsOfLaunch(functions.tiny, /*isRecorded=*/true);
  machine.sources["launch_seconds"] =
      fmt::format("{}: {} kernels of one row, one after another, recorded as a "
                  "graph; asked for one by one: {:.3g} us each",
                  measured, sizes.launches, 1e6 * asked);
}

std::vector<TimedProduct>
GpuMeasurement::timeProducts(GpuWork &work, const char *name, int32_t type) {
  std::vector<TimedProduct> products;
  for (ProductSize size : gpuProductSizes(name)) {
    if (sizes.isEmulated)
      size = {1, size.m / 64, size.n / 64, size.k / 64};
    RotaGemm gemm = describe(size, usualFormOf(size), type);
    double bytes = 0;
    for (const DeviceBench::Buffer &buffer : buffersOf(gemm))
      bytes += double(buffer.bytes);
    products.push_back({size, bytes, work.secondsOfProduct(gemm)});
  }
  return products;
}

/// The peak by clocks, of a data sheet, or what products reach.
void GpuMeasurement::setPeak(const char *type, double reached) {
  const auto *known = llvm::find_if(kClockRates, [&](const ClockRates &rates) {
    return rates.architecture == architecture;
  });
  double ofClock = known == std::end(kClockRates)    ? 0
                   : llvm::StringRef(type) == "bf16" ? known->bf16
                                                     : known->f32;
  double peak = machine.units * clock * ofClock;
  std::string path = fmt::format("types.{}.flops_per_second", type);
  std::string source = fmt::format(
      "{}: {} multiprocessors, {} operations a clock (NVIDIA's white papers), "
      "{:.4g} GHz, as the driver says",
      measured, machine.units, ofClock, 1e-9 * clock);
  const Machine *described = request.described ? &*request.described : nullptr;
  if (described && described->types.count(type)) {
    peak = described->types.at(type).flopsPerSecond;
    source = described->name + ": " + described->sourceOf(path);
  }
  if (peak < reached) {
    peak = reached;
    source = measured + ": the best of the products";
  }
  machine.types[type].flopsPerSecond = peak;
  machine.sources[path] = source;
}

void GpuMeasurement::measureProducts(GpuWork &work) {
  double share = 0.3;
  for (auto [name, type] : kTypes) {
    begin(fmt::format("products of {}", name).c_str(), share);
    share = 0.75;
    std::vector<TimedProduct> products = timeProducts(work, name, type);
    double best = 0;
    for (const TimedProduct &product : products)
      best = std::max(best, product.size.flops() / product.seconds);
    setPeak(name, best);
    if (type == ROTA_BF16) {
      mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
      double error =
          fitProducts(machine, products, mlir::BFloat16Type::get(&context));
      std::string source = fmt::format(
          "{}: fitted to {} products of bf16, which it says with an error of "
          "{:.2g} % on average",
          measured, products.size(), 100 * error);
      for (const char *path : {"tiles", "product_efficiency", "depth"})
        machine.sources[path] = source;
      continue;
    }
    for (const TimedProduct &product : products)
      machine.types[name].products.push_back(
          {product.size, product.size.flops() / product.seconds});
    machine.sources[fmt::format("types.{}.products", name)] = measured;
  }
}

/// As a file has it.
double shareOf(double part, double whole) {
  return std::clamp(part / whole, 0.001, 1.0);
}

/// Of a function's kernels.
double rateOf(GpuWork &work, size_t number) {
  return work.costOf(number).flops / work.secondsOfFunction(number);
}

void GpuMeasurement::measureRows(GpuWork &work) {
  begin("row kernels", 0.15);
  machine.rowFlopsPerSecond = rateOf(work, functions.arithmetic);
  machine.sources["row_flops_per_second"] =
      fmt::format("{}: a compiled kernel of {} additions and products on each "
                  "number, in f32",
                  measured, 2 * kArithmetic);
  double bytes = 0, seconds = 0;
  for (size_t number : functions.rows) {
    bytes += work.costOf(number).bytes();
    seconds += work.secondsOfFunction(number);
  }
  machine.memoryEfficiency =
      shareOf(bytes / seconds, machine.memoryBytesPerSecond);
  machine.sources["memory.efficiency"] =
      measured + ": compiled normalization, its derivative, gated activation, "
                 "loss and its derivative in bf16";
}

void GpuMeasurement::measureAttention(GpuWork &work) {
  begin("attention", 0.85);
  for (const Functions::Attention &attention : functions.attention) {
    TypeRates &rates = machine.types[attention.type];
    double forward = rateOf(work, attention.forward),
           backward = rateOf(work, attention.backward);
    bool isMain = attention.type == std::string("bf16");
    if (isMain) {
      machine.attentionForward = shareOf(forward, rates.flopsPerSecond);
      machine.attentionBackward = shareOf(backward, rates.flopsPerSecond);
    } else {
      rates.attentionForward = forward;
      rates.attentionBackward = backward;
    }
    std::string path = isMain
                           ? "attention"
                           : fmt::format("types.{}.attention", attention.type);
    machine.sources[path] = fmt::format(
        "{}: sequences: {} of {} tokens, heads: {} of {}, {}", measured,
        attention.sizes.batch, attention.sizes.tokens, attention.sizes.heads,
        attention.sizes.headSize, attention.type);
  }
}

void GpuMeasurement::measureNetwork() {
  bool isMeasured = sizes.isEmulated || gpus > 1;
  const Machine *described = request.described ? &*request.described : nullptr;
  if (!isMeasured)
    return setGpuNetwork(machine, nullptr, described, measured);
  begin("messages between ranks", 0.9);
  int ranks = sizes.isEmulated ? kEmulatedRanks : gpus;
  MessageRates times = sizes.isEmulated
                           ? timeSharedMessages(code, ranks, sizes.messageBytes)
                           : timeGpuMessages(code, ranks, sizes.messageBytes,
                                             kMessageShare * request.seconds);
  if (sizes.isEmulated)
    times = {times.bytesPerSecond / kEmulatedSecond,
             times.latency * kEmulatedSecond};
  NetworkLevel level = {fmt::format("{} GPUs of this host", ranks),
                        ranks,
                        times.bytesPerSecond,
                        times.latency,
                        1,
                        0};
  setGpuNetwork(machine, &level, described, measured);
}

} // namespace

std::optional<Machine> measureGpu(const GpuRequest &request,
                                  GpuFailure &failure) try {
  GpuSizes sizes;
  if (traitsOf(request.device).isEmulated)
    sizes = {.isEmulated = true,
             .copiedBytes = 64 << 10,
             .hostBytes = 64 << 10,
             .messageBytes = 4 << 10,
             .arithmeticRows = 1,
             .launches = 4};
  else
    prepareForNccl(); // before the driver is loaded
  if (!sizes.isEmulated)
    cuda::loadDriver(); // its absence is told before anything is compiled
  bench::GpuOps ops;
  Functions functions;
  bool isGood = addFunctions(ops, sizes, functions);
  llvm::ArrayRef<RotaGpuCode> code;
  if (isGood)
    code = ops.link(
        {.isEmulated = sizes.isEmulated, .hasServices = true, .cpu = "native"});
  if (code.empty()) {
    failure = {"a kernel cannot be compiled for the GPU"};
    return std::nullopt;
  }
  return GpuMeasurement(request, ops, functions, sizes, code).run();
} catch (const InputError &error) {
  failure = {error.what(), /*isInput=*/true};
  return std::nullopt;
} catch (const std::exception &error) {
  failure = {error.what()};
  return std::nullopt;
}

} // namespace rota
