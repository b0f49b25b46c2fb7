// SPDX-License-Identifier: Apache-2.0
//
// Which of a trainer's codes a GPU loads, with a driver that only loads code.
#include "runtime/device/cuda/Gpu.h"
#include "runtime/device/Device.h"
#include "runtime/device/cuda/Libraries.h"
#include "test/runtime/EnvironmentVariable.h"
#include "test/runtime/TemporaryFolder.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <gtest/gtest.h>

using namespace rota;
using namespace rota::cuda;

namespace {

/// The state of the driver below and the calls of it.
struct Machine {
  int architecture = 90;
  std::vector<const char *> refused = {}; // codes, and
  Result refusal = kUnsupportedPtxVersion;
  std::vector<std::string> loaded = {}; // or refused
  int contexts = 0, modules = 0;
};
Machine machine;

Result loadModule(ModuleHandle *module, const void *data, unsigned, int *,
                  void **) {
  auto *name = static_cast<const char *>(data);
  machine.loaded.push_back(name);
  for (const char *refused : machine.refused)
    if (std::strcmp(refused, name) == 0)
      return machine.refusal;
  ++machine.modules;
  *module = reinterpret_cast<ModuleHandle>(&machine);
  return kSuccess;
}

Result attribute(int *value, int attribute, Ordinal) {
  *value = attribute == kCapabilityMajor           ? machine.architecture / 10
           : attribute == kCapabilityMinor         ? machine.architecture % 10
           : attribute == kMostSharedBytesByChoice ? 101376
                                                   : 132;
  return kSuccess;
}

DriverApi makeDriver() {
  DriverApi api;
  api.init = [](unsigned) { return kSuccess; };
  api.driverVersion = [](int *version) { return *version = 12040, kSuccess; };
  api.deviceCount = [](int *count) { return *count = 2, kSuccess; };
  api.device = [](Ordinal *device, int n) { return *device = n, kSuccess; };
  api.deviceName = [](char *name, int, Ordinal) {
    std::strcpy(name, "Fake");
    return kSuccess;
  };
  api.deviceAttribute = attribute;
  api.retainContext = [](ContextHandle *, Ordinal) {
    ++machine.contexts;
    return kSuccess;
  };
  api.releaseContext = [](Ordinal) {
    --machine.contexts;
    return kSuccess;
  };
  api.setContext = [](ContextHandle) { return kSuccess; };
  api.loadModule = loadModule;
  api.moduleFunction = [](FunctionHandle *function, ModuleHandle,
                          const char *) {
    *function = reinterpret_cast<FunctionHandle>(&machine);
    return kSuccess;
  };
  api.setFunctionAttribute = [](FunctionHandle, int, int) { return kSuccess; };
  api.unloadModule = [](ModuleHandle) {
    --machine.modules;
    return kSuccess;
  };
  api.errorText = [](Result, const char **text) {
    return *text = "out of memory", kSuccess;
  };
  api.errorName = [](Result, const char **text) {
    return *text = "CUDA_ERROR_OUT_OF_MEMORY", kSuccess;
  };
  return api;
}

RotaGpuCode ptx(int architecture, const char *name) {
  return {ROTA_GPU_PTX, architecture, name, 1};
}
RotaGpuCode cubin(int architecture, const char *name) {
  return {ROTA_GPU_CUBIN, architecture, name, 1};
}

/// All that a trainer for three chips has, in an order that helps nobody.
const std::vector<RotaGpuCode> kCode = {
    ptx(80, "ptx 80"),     cubin(100, "cubin 100"), ptx(100, "ptx 100"),
    cubin(80, "cubin 80"), ptx(90, "ptx 90"),       cubin(90, "cubin 90")};

/// The codes that the GPU tried, the last one with success.
std::vector<std::string> load(Machine of, std::span<const RotaGpuCode> code) {
  static const DriverApi api = makeDriver();
  machine = std::move(of);
  {
    Gpu gpu(api, 1, code);
    EXPECT_EQ(gpu.architecture(), machine.architecture);
    EXPECT_EQ(gpu.multiprocessors(), 132);
    EXPECT_EQ(machine.modules, 1);
  }
  EXPECT_EQ(machine.modules, 0);
  EXPECT_EQ(machine.contexts, 0);
  return machine.loaded;
}

template <typename Error>
std::string messageOf(Machine of, std::span<const RotaGpuCode> code) {
  try {
    load(std::move(of), code);
  } catch (const Error &error) {
    EXPECT_EQ(machine.contexts, 0);
    return error.what();
  }
  ADD_FAILURE() << "expected an error";
  return "";
}

using Loaded = std::vector<std::string>;

} // namespace

TEST(Gpu, LoadsTheCubinOfItsArchitecture) {
  EXPECT_EQ(load({80}, kCode), Loaded{"cubin 80"});
  EXPECT_EQ(load({90}, kCode), Loaded{"cubin 90"});
  EXPECT_EQ(load({100}, kCode), Loaded{"cubin 100"});
}

TEST(Gpu, LoadsTheCubinOfAnOlderOneWithTheSameFirstDigit) {
  EXPECT_EQ(load({89}, kCode), Loaded{"cubin 80"});
  EXPECT_EQ(load({103}, kCode), Loaded{"cubin 100"});
}

TEST(Gpu, LoadsTheNewestPtxThatItCanRun) {
  EXPECT_EQ(load({120}, kCode), Loaded{"ptx 100"});
  std::vector<RotaGpuCode> two = {ptx(80, "ptx 80"), cubin(80, "cubin 80")};
  EXPECT_EQ(load({90}, two), Loaded{"ptx 80"});
}

TEST(Gpu, TriesOlderCodeWhereTheDriverRefusesNewer) {
  EXPECT_EQ(load({90, {"cubin 90", "ptx 90"}}, kCode),
            (Loaded{"cubin 90", "ptx 90", "ptx 80"}));
}

TEST(Gpu, SaysWhichCodeThereIs) {
  std::vector<RotaGpuCode> two = {ptx(90, "ptx 90"), cubin(90, "cubin 90")};
  EXPECT_EQ(messageOf<InputError>({89}, two),
            "GPU 1 (Fake) is an sm_89: expected code for it in this trainer, "
            "which has PTX for sm_90, code for sm_90; compile with "
            "--target-gpu");
  // Code for the emulated GPU is for no other.
  std::vector<RotaGpuCode> host = {{ROTA_GPU_HOST, 0, "host", 1}};
  EXPECT_EQ(messageOf<InputError>({90}, host),
            "GPU 1 (Fake) is an sm_90: expected code for it in this trainer, "
            "which has code for sm_0; compile with --target-gpu");
}

TEST(Gpu, SaysThatTheDriverIsTooOld) {
  std::vector<RotaGpuCode> one = {ptx(90, "ptx 90")};
  for (Result refusal : {kUnsupportedPtxVersion, kInvalidPtx, kNoBinaryForGpu})
    EXPECT_EQ(messageOf<InputError>({90, {"ptx 90"}, refusal}, one),
              "GPU 1 (Fake): the driver, for CUDA 12.4, is too old for this "
              "trainer's code (PTX for sm_90)");
  EXPECT_EQ(messageOf<DeviceError>({90, {"ptx 90"}, kOutOfMemory}, one),
            "GPU 1 (Fake): loading the kernels: out of memory "
            "(CUDA_ERROR_OUT_OF_MEMORY)");
}

TEST(Gpu, SaysThatABlockHasLessMemory) {
  const DriverApi api = makeDriver();
  machine = {120};
  Gpu gpu(api, 1, kCode);
  EXPECT_NE(gpu.function("attention", 101376), nullptr);
  try {
    gpu.function("attention", 101377);
    FAIL() << "expected an error";
  } catch (const InputError &error) {
    EXPECT_STREQ(error.what(),
                 "GPU 1 (Fake): expected at most 101376 bytes of shared memory "
                 "for a block, as much as it has; 'attention' needs 101377");
  }
}

TEST(Gpu, GivesALaunchTheMemoryOfItsForm) {
  const DriverApi api = makeDriver();
  RotaGpuLaunch both{}, one{};
  both.sharedBytes = one.sharedBytes = 100;
  both.ownSharedBytes = 300;
  auto bytesOn = [&](Machine of) {
    std::vector<RotaGpuCode> code = kCode;
    code.push_back({ROTA_GPU_OWN_PTX, 90, "own ptx 90", 1});
    code.push_back({ROTA_GPU_OWN_CUBIN, 90, "own cubin 90", 1});
    machine = std::move(of);
    Gpu gpu(api, 1, code);
    EXPECT_EQ(gpu.sharedBytesOf(one), 100);
    return gpu.sharedBytesOf(both);
  };
  EXPECT_EQ(bytesOn({90}), 300);
  EXPECT_EQ(bytesOn({90, {"own cubin 90"}}), 300);
  EXPECT_EQ(bytesOn({90, {"own cubin 90", "own ptx 90"}}), 100);
  EXPECT_EQ(bytesOn({80}), 100);
  EXPECT_EQ(bytesOn({100}), 100);
}

TEST(Driver, LoadsCodeWhenItIsAskedFor) {
  constexpr const char *kLoading = "CUDA_MODULE_LOADING";
  unsetenv(kLoading);
  try {
    loadDriver();
  } catch (const InputError &) { // none is here
  }
  EXPECT_STREQ(std::getenv(kLoading), "LAZY");
}

TEST(Libraries, AreFoundBesideTheLoadersFolders) {
  test::TemporaryFolder folder;
  std::string packages = "lib/python3.12/site-packages/nvidia/cublas/lib";
  std::filesystem::create_directories(folder.path("venv/" + packages));
  folder.write("venv/" + packages + "/libnothing.so", "no library");
  test::EnvironmentVariable cuda("CUDA_HOME", "/cuda");
  test::EnvironmentVariable python("VIRTUAL_ENV", folder.path("venv").c_str());
  std::vector<std::string> folders = libraryFolders();
  constexpr const char *kNames[] = {"libnothing.so"};
  std::string faults;
  EXPECT_EQ(openLibrary(kNames, faults), nullptr);
  ASSERT_GE(folders.size(), 3u);
  EXPECT_EQ(folders[0], "/cuda/lib64");
  EXPECT_EQ(folders[1], "/usr/local/cuda/lib64");
  EXPECT_EQ(folders[2], folder.path("venv/" + packages));
  EXPECT_NE(faults.find("libnothing.so"), faults.npos) << faults;
}

TEST(Gpu, SaysThatThereAreFewer) {
  const DriverApi api = makeDriver();
  machine = {};
  try {
    Gpu gpu(api, 2, kCode);
    FAIL() << "expected an error";
  } catch (const InputError &error) {
    EXPECT_STREQ(error.what(), "expected GPU 2 on this machine, it has 2 "
                               "(CUDA_VISIBLE_DEVICES may hide others)");
  }
}
