// SPDX-License-Identifier: Apache-2.0
//
// NVIDIA's driver, found at run time.
#include "runtime/device/cuda/DriverApi.h"
#include "runtime/Error.h"

#include <cstdlib>
#include <dlfcn.h>
#include <fmt/format.h>

namespace rota::cuda {

/// The first CUDA whose driver has all of the functions: 12.0.
static constexpr int kLeastVersion = 12000;

static constexpr const char *kOtherDevices =
    "; a trainer that was compiled with --device cpu or --device simt runs "
    "without a GPU";

static std::string versionText(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

/// Code is loaded when a function is asked for: cuBLASLt has 541 MB of it. This
/// is the default since CUDA 12.2.
static void loadLazily() {
  setenv("CUDA_MODULE_LOADING", "LAZY", /*overwrite=*/0);
}

static DriverApi openDriver() {
  loadLazily();
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library)
    throw InputError(fmt::format(
        "expected NVIDIA's driver, found no libcuda.so.1 on this machine, in "
        "LD_LIBRARY_PATH or where the system's loader looks{}",
        kOtherDevices));
  DriverApi api;
  auto find = [&](auto &member, const char *symbol) {
    member = reinterpret_cast<std::remove_reference_t<decltype(member)>>(
        dlsym(library, symbol));
    if (!member)
      throw InputError(fmt::format(
          "expected a driver for CUDA {} or later, the one here has no {}",
          versionText(kLeastVersion), symbol));
  };
#define X(member, symbol, parameters) find(api.member, symbol);
  ROTA_CUDA_DRIVER_FUNCTIONS(X)
#undef X
  int version = 0;
  api.driverVersion(&version);
  if (version < kLeastVersion)
    throw InputError(
        fmt::format("expected a driver for CUDA {} or later, got one for {}",
                    versionText(kLeastVersion), versionText(version)));
  if (Result result = api.init(0); result != kSuccess) {
    const char *text = "unknown error";
    api.errorText(result, &text);
    throw InputError(fmt::format("NVIDIA's driver cannot start: {} ({}){}",
                                 text, result, kOtherDevices));
  }
  return api;
}

const DriverApi &loadDriver() {
  static const DriverApi api = openDriver();
  return api;
}

} // namespace rota::cuda
