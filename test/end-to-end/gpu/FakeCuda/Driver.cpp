// SPDX-License-Identifier: Apache-2.0
//
// A driver for CUDA 13.0 with one GPU of 1 MiB that does nothing. FAKE_CUDA in
// the environment says what else is wrong with it:
//   version    the driver is one for CUDA 11.8
//   start      there is no GPU, which the start of the driver says
//   count      the GPU is hidden
//   chip       the GPU is an sm_75
//   ptx        the driver does not know the version of the PTX
#include "runtime/device/cuda/DriverApi.h"

#include <cstdlib>
#include <cstring>

using namespace rota::cuda;

static constexpr size_t kFreeBytes = 1000000;

static bool isWrong(const char *part) {
  const char *wrong = std::getenv("FAKE_CUDA");
  return wrong && std::strcmp(wrong, part) == 0;
}

extern "C" {

Result cuInit(unsigned) { return isWrong("start") ? kNoDevice : kSuccess; }

Result cuDriverGetVersion(int *version) {
  *version = isWrong("version") ? 11080 : 13000;
  return kSuccess;
}

Result cuDeviceGetCount(int *count) {
  *count = isWrong("count") ? 0 : 1;
  return kSuccess;
}

Result cuDeviceGetName(char *name, int length, Ordinal) {
  std::strncpy(name, "Fake H100", static_cast<size_t>(length));
  return kSuccess;
}

Result cuDeviceGetAttribute(int *value, int attribute, Ordinal) {
  bool isOld = isWrong("chip");
  *value = attribute == kCapabilityMajor   ? (isOld ? 7 : 9)
           : attribute == kCapabilityMinor ? (isOld ? 5 : 0)
                                           : 1;
  return kSuccess;
}

Result cuMemGetInfo_v2(size_t *free, size_t *total) {
  *free = kFreeBytes;
  *total = 1 << 20;
  return kSuccess;
}

Result cuMemAlloc_v2(Address *, size_t bytes) {
  return bytes > kFreeBytes ? kOutOfMemory : kSuccess;
}

Result cuMemHostAlloc(void **address, size_t bytes, unsigned) {
  *address = std::malloc(bytes);
  return *address ? kSuccess : kOutOfMemory;
}

Result cuMemFreeHost(void *address) {
  std::free(address);
  return kSuccess;
}

Result cuModuleLoadDataEx(ModuleHandle *, const void *, unsigned, int *,
                          void **) {
  return isWrong("ptx") ? kUnsupportedPtxVersion : kSuccess;
}

Result cuGetErrorString(Result, const char **text) {
  *text = "no CUDA-capable device is detected";
  return kSuccess;
}

} // extern "C"
