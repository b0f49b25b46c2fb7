// SPDX-License-Identifier: Apache-2.0
#include "tools/rota/Version.h"

#include "runtime/Error.h"
#include "runtime/collective/mpi/MpiCommunicator.h"
#include "runtime/collective/nccl/NcclApi.h"
#include "runtime/device/cpu/OneDnn.h"
#include "runtime/device/cuda/BlasLtApi.h"
#include "runtime/device/cuda/DriverApi.h"

#include "llvm-c/Core.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <fmt/format.h>
#include <pcre2.h>
#include <string>
#include <unicode/uversion.h>

namespace rota {
namespace {

std::string llvmVersion() {
  unsigned major = 0, minor = 0, patch = 0;
  LLVMGetVersion(&major, &minor, &patch);
  return fmt::format("{}.{}.{}", major, minor, patch);
}

/// "10.42", without the date after it.
std::string pcre2Version() {
  char text[64] = {};
  pcre2_config(PCRE2_CONFIG_VERSION, text);
  std::string version = text;
  return version.substr(0, version.find(' '));
}

std::string icuVersion() {
  UVersionInfo version;
  u_getVersion(version);
  char text[U_MAX_VERSION_STRING_LENGTH] = {};
  u_versionToString(version, text);
  return text;
}

std::string driverVersion() {
  int version = 0; // 12040 for 12.4
  cuda::loadDriver().driverVersion(&version);
  return fmt::format("CUDA {}.{}", version / 1000, version % 1000 / 10);
}

/// 120401 for 12.4.1, as of CUDA 12.
std::string blasLtVersion() {
  size_t version = cuda::loadBlasLt().version();
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100,
                     version % 100);
}

std::string ncclVersion() {
  int version = 0; // 22809 for 2.28.9
  loadNccl().version(&version);
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100,
                     version % 100);
}

/// The version that `find` returns for a library that trainers load on demand.
std::string ifUsable(std::string (*find)()) {
  try {
    return find();
  } catch (const std::exception &) {
    return "none that a trainer here could use";
  }
}

} // namespace

void printVersion() {
  fmt::print("rota {}\n", ROTA_VERSION);
  const std::pair<const char *, std::string> libraries[] = {
      {"LLVM and MLIR", llvmVersion()},
      {"oneDNN", ifUsable(oneDnnVersion)},
      {"PCRE2", pcre2Version()},
      {"ICU", icuVersion()},
      {"sentencepiece", ROTA_SENTENCEPIECE_VERSION},
      {"MPI", ifUsable(mpiVersion)},
      {"NVIDIA driver", ifUsable(driverVersion)},
      {"cuBLASLt", ifUsable(blasLtVersion)},
      {"NCCL", ifUsable(ncclVersion)}};
  for (const auto &[name, version] : libraries)
    fmt::print("  {:<14} {}\n", name, version);
}

} // namespace rota
