// SPDX-License-Identifier: Apache-2.0
//
// A driver for CUDA 13.0 with one GPU of 1 MiB, whose work (Work.cpp) takes
// time and does nothing. FAKE_CUDA in the environment says what is different:
//   large      the GPU has 80 GB
//   version    the driver is one for CUDA 11.8
//   start      there is no GPU, which the start of the driver says
//   count      the GPU is hidden
//   chip       the GPU is an sm_75
//   ptx        the driver does not know the version of the PTX
#include "runtime/device/cuda/DriverApi.h"

#include <cstdlib>
#include <cstring>

using namespace rota::cuda;

static bool is(const char *part) {
  const char *different = std::getenv("FAKE_CUDA");
  return different && std::strcmp(different, part) == 0;
}

extern "C" {

Result cuInit(unsigned) { return is("start") ? kNoDevice : kSuccess; }

Result cuDriverGetVersion(int *version) {
  *version = is("version") ? 11080 : 13000;
  return kSuccess;
}

Result cuDeviceGetCount(int *count) {
  *count = is("count") ? 0 : 1;
  return kSuccess;
}

Result cuDeviceGetName(char *name, int length, Ordinal) {
  std::strncpy(name, "Fake H100", static_cast<size_t>(length));
  return kSuccess;
}

Result cuDeviceGetAttribute(int *value, int attribute, Ordinal) {
  bool isOld = is("chip");
  *value = attribute == kCapabilityMajor           ? (isOld ? 7 : 9)
           : attribute == kCapabilityMinor         ? (isOld ? 5 : 0)
           : attribute == kMultiprocessorCount     ? 132
           : attribute == kClockRate               ? 1980000
           : attribute == kMemoryClockRate         ? 2619000
           : attribute == kMemoryBusWidth          ? 5120
           : attribute == kMostSharedBytesByChoice ? 227 << 10
                                                   : 1;
  return kSuccess;
}

Result cuMemGetInfo_v2(size_t *free, size_t *total) {
  *free = is("large") ? size_t(80) << 30 : 1000000;
  *total = is("large") ? size_t(80) << 30 : 1 << 20;
  return kSuccess;
}

Result cuModuleLoadDataEx(ModuleHandle *, const void *, unsigned, int *,
                          void **) {
  return is("ptx") ? kUnsupportedPtxVersion : kSuccess;
}

Result cuGetErrorString(Result result, const char **text) {
  *text = result == kNoDevice ? "no CUDA-capable device is detected"
                              : "invalid argument";
  return kSuccess;
}

} // extern "C"
