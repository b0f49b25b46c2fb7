// SPDX-License-Identifier: Apache-2.0
//
// Memory, and work that takes time on a clock of its own and does nothing: what
// the host reads is 0. A call that breaks one of CUDA's rules is refused.
#include "runtime/device/cuda/BlasLtApi.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <sys/mman.h>

using namespace rota::cuda;

struct CUevent_st {
  double seconds = -1; // not recorded
};
struct CUfunc_st {
  unsigned sharedBytes = 48 << 10;
};
struct CUgraphExec_st {
  int launches;
};

namespace {

std::map<Address, size_t> allocations, hostAllocations;
double now = 0; // seconds
bool isCapturing = false;
int captured = 0; // launches

/// Whether one of the blocks has all of the bytes.
bool has(const std::map<Address, size_t> &blocks, Address begin, size_t bytes) {
  auto next = blocks.upper_bound(begin);
  if (next == blocks.begin())
    return false;
  auto [first, size] = *std::prev(next);
  return begin + bytes <= first + size;
}

bool isKnown(Address begin, size_t bytes) {
  return has(allocations, begin, bytes) || has(hostAllocations, begin, bytes);
}

/// Work of so many seconds, of launches also in a capture.
Result work(double seconds, bool isLaunch = false) {
  if (isCapturing) {
    ++captured;
    return isLaunch ? kSuccess : kInvalidValue;
  }
  now += seconds;
  return kSuccess;
}

Result unlessCapturing() { return isCapturing ? kInvalidValue : kSuccess; }

} // namespace

extern "C" {

Result cuMemGetInfo_v2(size_t *free, size_t *total);

Result cuMemAlloc_v2(Address *address, size_t bytes) {
  size_t free = 0, total = 0;
  cuMemGetInfo_v2(&free, &total);
  if (bytes > free)
    return kOutOfMemory;
  void *memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  *address = reinterpret_cast<Address>(memory);
  allocations[*address] = bytes;
  return unlessCapturing();
}

Result cuMemFree_v2(Address address) {
  auto found = allocations.find(address);
  if (found == allocations.end())
    return kInvalidValue;
  munmap(reinterpret_cast<void *>(address), found->second);
  allocations.erase(found);
  return unlessCapturing();
}

Result cuMemHostAlloc(void **address, size_t bytes, unsigned) {
  *address = std::malloc(bytes);
  hostAllocations[reinterpret_cast<Address>(*address)] = bytes;
  return *address ? unlessCapturing() : kOutOfMemory;
}

Result cuMemFreeHost(void *address) {
  if (!hostAllocations.erase(reinterpret_cast<Address>(address)))
    return kInvalidValue;
  std::free(address);
  return unlessCapturing();
}

Result cuMemcpyAsync(Address destination, Address source, size_t bytes,
                     StreamHandle) {
  if (!isKnown(destination, bytes) || !isKnown(source, bytes))
    return kInvalidValue;
  bool isRead = has(hostAllocations, destination, bytes);
  if (isRead)
    std::memset(reinterpret_cast<void *>(destination), 0, bytes);
  bool isInside = !isRead && !has(hostAllocations, source, bytes);
  return work(1e-6 + double(bytes) / (isInside ? 1.4e12 : 5e10));
}

Result cuMemsetD8Async(Address destination, unsigned char, size_t count,
                       StreamHandle) {
  return isKnown(destination, count) ? work(1e-6) : kInvalidValue;
}

Result cuEventCreate(EventHandle *event, unsigned) {
  *event = new CUevent_st();
  return kSuccess;
}

Result cuEventDestroy_v2(EventHandle event) {
  delete event;
  return kSuccess;
}

Result cuEventRecord(EventHandle event, StreamHandle) {
  event->seconds = now;
  return kSuccess;
}

Result cuEventSynchronize(EventHandle) { return unlessCapturing(); }
Result cuStreamSynchronize(StreamHandle) { return unlessCapturing(); }

Result cuEventElapsedTime(float *milliseconds, EventHandle begin,
                          EventHandle end) {
  *milliseconds = static_cast<float>(1e3 * (end->seconds - begin->seconds));
  return begin->seconds < 0 || end->seconds < 0 ? kInvalidValue : kSuccess;
}

Result cuModuleGetFunction(FunctionHandle *function, ModuleHandle,
                           const char *) {
  static std::deque<CUfunc_st> functions;
  *function = &functions.emplace_back();
  return kSuccess;
}

Result cuFuncSetAttribute(FunctionHandle function, int attribute, int value) {
  if (attribute != kMostDynamicSharedBytes)
    return kInvalidValue;
  function->sharedBytes = static_cast<unsigned>(value);
  return kSuccess;
}

Result cuLaunchKernel(FunctionHandle function, unsigned gridX, unsigned gridY,
                      unsigned gridZ, unsigned blockX, unsigned blockY,
                      unsigned blockZ, unsigned sharedBytes, StreamHandle,
                      void **, void **) {
  constexpr unsigned kMostBlocks = 65535, kMostThreads = 1024;
  unsigned threads = blockX * blockY * blockZ;
  bool isGood = gridX > 0 && gridY > 0 && gridZ > 0 && threads > 0 &&
                std::max(gridY, gridZ) <= kMostBlocks &&
                threads <= kMostThreads && sharedBytes <= function->sharedBytes;
  return isGood ? work(2e-6 + 1e-8 * gridX, /*isLaunch=*/true) : kInvalidValue;
}

Result cuStreamBeginCapture_v2(StreamHandle, int) {
  Result result = unlessCapturing();
  isCapturing = true;
  captured = 0;
  return result;
}

Result cuStreamEndCapture(StreamHandle, GraphHandle *) {
  Result result = isCapturing ? kSuccess : kInvalidValue;
  isCapturing = false;
  return result;
}

Result cuStreamIsCapturing(StreamHandle, int *status) {
  *status = isCapturing ? kNoCapture + 1 : kNoCapture;
  return kSuccess;
}

Result cuGraphInstantiateWithFlags(GraphExecHandle *graph, GraphHandle,
                                   unsigned long long) {
  *graph = new CUgraphExec_st{captured};
  return kSuccess;
}

Result cuGraphExecDestroy(GraphExecHandle graph) {
  delete graph;
  return kSuccess;
}

Result cuGraphLaunch(GraphExecHandle graph, StreamHandle) {
  return work(1.5e-6 * graph->launches);
}

BlasStatus cublasLtMatmulAlgoGetHeuristic(BlasLtContext *, BlasLtOperation *,
                                          BlasLtLayout *, BlasLtLayout *,
                                          BlasLtLayout *, BlasLtLayout *,
                                          BlasLtPreference *, int,
                                          BlasLtCandidate *candidates,
                                          int *count) {
  candidates[0] = {};
  *count = 1;
  return kBlasSuccess;
}

BlasStatus cublasLtMatmul(BlasLtContext *, BlasLtOperation *, const void *,
                          const void *, BlasLtLayout *, const void *,
                          BlasLtLayout *, const void *, const void *,
                          BlasLtLayout *, void *, BlasLtLayout *,
                          const BlasLtAlgorithm *, void *, size_t,
                          StreamHandle) {
  return work(1e-4, /*isLaunch=*/true) == kSuccess ? kBlasSuccess
                                                   : kBlasNotSupported;
}

} // extern "C"
