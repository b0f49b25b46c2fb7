// SPDX-License-Identifier: Apache-2.0
//
// The time of GPU work, on the GPU's clock: the launches that
// bench-gpu-compile wrote, a product of matrices, or a copy.
//   bench-gpu CODE.so op LAUNCHES.json
//   bench-gpu CODE.so gemm M N K TRANSPOSE-A TRANSPOSE-B ACCUMULATE
//   bench-gpu CODE.so copy BYTES
// The form of the code says whether the GPU is NVIDIA's or emulated. Prints a
// line of JSON: seconds (the median) and the GPU's name. Fails where a result
// is not finite; results are NaN before the run.
#include "runtime/Error.h"
#include "tools/measure/DeviceBench.h"

#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <fstream>
#include <nlohmann/json.hpp>

namespace {

using Json = nlohmann::json;
using rota::Device;
using rota::DeviceBench;

template <typename T> T *symbolOf(void *library, const char *name) {
  void *symbol = dlsym(library, name);
  if (!symbol)
    throw rota::InputError(std::string("expected '") + name + "' in the code");
  return static_cast<T *>(symbol);
}

double runLaunches(DeviceBench &bench, const char *path) {
  std::ifstream file(path);
  Json plan = Json::parse(file);
  std::vector<DeviceBench::Buffer> buffers;
  for (const Json &item : plan["buffers"])
    buffers.push_back({item["element"], item["bytes"], item["given"]});
  std::vector<DeviceBench::Launch> launches;
  for (const Json &item : plan["launches"])
    launches.push_back({item["kernel"], item["grid"], item["block"],
                        item["shared"], item["own_shared"], item["arguments"]});
  bench.allocate(std::move(buffers));
  return bench.measure(bench.runOf(std::move(launches)));
}

double runGemm(Device &device, DeviceBench &bench, char **arguments) {
  RotaGemm g = {};
  g.batch = 1;
  g.m = std::atoll(arguments[0]);
  g.n = std::atoll(arguments[1]);
  g.k = std::atoll(arguments[2]);
  g.transposeA = std::atoi(arguments[3]);
  g.transposeB = std::atoi(arguments[4]);
  g.accumulate = std::atoi(arguments[5]);
  g.lda = g.transposeA ? g.m : g.k;
  g.ldb = g.transposeB ? g.k : g.n;
  g.ldc = g.n;
  g.typeA = g.typeB = ROTA_BF16;
  g.typeC = g.accumulate ? ROTA_F32 : ROTA_BF16; // as gradients of weights
  bench.allocate(rota::buffersOf(g));
  return bench.measure([&](int64_t set) {
    device.multiply(nullptr, g, bench.at(set, 0), bench.at(set, 1),
                    bench.at(set, 2));
  });
}

double runCopy(Device &device, DeviceBench &bench, int64_t bytes) {
  bench.allocate({{"f32", bytes, true}, {"f32", bytes, false}});
  return bench.measure([&](int64_t set) {
    device.copy(nullptr, bench.at(set, 0), bench.at(set, 1), bytes);
  });
}

int run(int argc, char **argv) {
  std::string what = argc > 2 ? argv[2] : "";
  int count = what == "gemm" ? 9 : what == "op" || what == "copy" ? 4 : 0;
  if (argc != count)
    throw rota::InputError("expected CODE.so op LAUNCHES.json, CODE.so gemm "
                           "M N K TA TB ACCUMULATE, or CODE.so copy BYTES");
  void *library = dlopen(argv[1], RTLD_NOW);
  if (!library)
    throw rota::InputError(dlerror());
  std::span code(symbolOf<const RotaGpuCode>(library, "rotaGpuCode"),
                 size_t(*symbolOf<int64_t>(library, "rotaGpuCodeCount")));
  bool isEmulated = code.front().form == ROTA_GPU_HOST;
  rota::Devices devices = rota::makeDevices(isEmulated ? rota::DeviceKind::Simt
                                                       : rota::DeviceKind::Cuda,
                                            1, code, {});
  Device &device = *devices.ranks.front();
  DeviceBench bench(device, isEmulated, {});
  double seconds = what == "op" ? runLaunches(bench, argv[3])
                   : what == "gemm"
                       ? runGemm(device, bench, argv + 3)
                       : runCopy(device, bench, std::atoll(argv[3]));
  bench.check();
  std::printf(
      "%s\n",
      Json{{"seconds", seconds}, {"device", device.name()}}.dump().c_str());
  return 0;
}

} // namespace

int main(int argc, char **argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception &error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}
