// SPDX-License-Identifier: Apache-2.0
//
// The runtime's declarations of CUDA's driver API against those of cuda.h,
// where the build has found it.
#include "runtime/device/cuda/DriverApi.h"
#include "runtime/device/simt/DriverResults.h"

#include <cstddef>
#include <gtest/gtest.h>
#include <map>
#include <string>
#include <type_traits>

#ifdef ROTA_HAS_CUDA_HEADER
#include <cuda.h>

using namespace rota;

namespace {

/// A type of cuda.h in the words of DriverApi.h, which has int for enums and a
/// structure of its own.
template <typename T> struct Plain {
  using Type = T;
};
template <typename T>
  requires std::is_enum_v<T>
struct Plain<T> {
  static_assert(sizeof(T) == sizeof(int));
  using Type = int;
};
template <typename T> struct Plain<const T> {
  using Type = const typename Plain<T>::Type;
};
template <typename T> struct Plain<T *> {
  using Type = typename Plain<T>::Type *;
};
template <typename Result, typename... Args> struct Plain<Result(Args...)> {
  using Type = typename Plain<Result>::Type(typename Plain<Args>::Type...);
};

/// The symbols whose types were compared, by the table's member.
std::map<std::string, std::string> compared() {
  std::map<std::string, std::string> symbols;
#define COMPARE(member, symbol)                                                \
  static_assert(std::is_same_v<decltype(cuda::DriverApi::member),              \
                               Plain<decltype(::symbol)>::Type *>);            \
  symbols[#member] = #symbol;
  COMPARE(init, cuInit)
  COMPARE(driverVersion, cuDriverGetVersion)
  COMPARE(deviceCount, cuDeviceGetCount)
  COMPARE(device, cuDeviceGet)
  COMPARE(deviceName, cuDeviceGetName)
  COMPARE(deviceAttribute, cuDeviceGetAttribute)
  COMPARE(retainContext, cuDevicePrimaryCtxRetain)
  COMPARE(releaseContext, cuDevicePrimaryCtxRelease_v2)
  COMPARE(setContext, cuCtxSetCurrent)
  COMPARE(memoryInfo, cuMemGetInfo_v2)
  COMPARE(allocate, cuMemAlloc_v2)
  COMPARE(free, cuMemFree_v2)
  COMPARE(allocateInStream, cuMemAllocAsync)
  COMPARE(freeInStream, cuMemFreeAsync)
  COMPARE(allocateHost, cuMemHostAlloc)
  COMPARE(freeHost, cuMemFreeHost)
  COMPARE(copy, cuMemcpyAsync)
  COMPARE(fill8, cuMemsetD8Async)
  COMPARE(createStream, cuStreamCreate)
  COMPARE(destroyStream, cuStreamDestroy_v2)
  COMPARE(synchronizeStream, cuStreamSynchronize)
  COMPARE(waitEvent, cuStreamWaitEvent)
  COMPARE(createEvent, cuEventCreate)
  COMPARE(destroyEvent, cuEventDestroy_v2)
  COMPARE(recordEvent, cuEventRecord)
  COMPARE(queryEvent, cuEventQuery)
  COMPARE(synchronizeEvent, cuEventSynchronize)
  COMPARE(elapsedTime, cuEventElapsedTime)
  COMPARE(loadModule, cuModuleLoadDataEx)
  COMPARE(unloadModule, cuModuleUnload)
  COMPARE(moduleFunction, cuModuleGetFunction)
  COMPARE(setFunctionAttribute, cuFuncSetAttribute)
  COMPARE(launch, cuLaunchKernel)
  COMPARE(beginCapture, cuStreamBeginCapture_v2)
  COMPARE(endCapture, cuStreamEndCapture)
  COMPARE(captureStatus, cuStreamIsCapturing)
  COMPARE(instantiateGraph, cuGraphInstantiateWithFlags)
  COMPARE(launchGraph, cuGraphLaunch)
  COMPARE(destroyGraphExec, cuGraphExecDestroy)
  COMPARE(destroyGraph, cuGraphDestroy)
  COMPARE(errorName, cuGetErrorName)
  COMPARE(errorText, cuGetErrorString)
#undef COMPARE
  return symbols;
}

TEST(CudaHeader, HasTheFunctions) {
  std::map<std::string, std::string> symbols;
#define X(member, symbol, parameters) symbols[#member] = symbol;
  ROTA_CUDA_DRIVER_FUNCTIONS(X)
#undef X
  EXPECT_EQ(compared(), symbols);
}

static_assert(std::is_same_v<cuda::Address, CUdeviceptr>);
static_assert(std::is_same_v<cuda::Ordinal, CUdevice>);

#define COMPARE(ours, theirs) static_assert(int(ours) == int(theirs));
COMPARE(cuda::kSuccess, CUDA_SUCCESS)
COMPARE(cuda::kInvalidValue, CUDA_ERROR_INVALID_VALUE)
COMPARE(cuda::kOutOfMemory, CUDA_ERROR_OUT_OF_MEMORY)
COMPARE(cuda::kNoDevice, CUDA_ERROR_NO_DEVICE)
COMPARE(cuda::kNoBinaryForGpu, CUDA_ERROR_NO_BINARY_FOR_GPU)
COMPARE(cuda::kInvalidPtx, CUDA_ERROR_INVALID_PTX)
COMPARE(cuda::kUnsupportedPtxVersion, CUDA_ERROR_UNSUPPORTED_PTX_VERSION)
COMPARE(cuda::kNotFound, CUDA_ERROR_NOT_FOUND)
COMPARE(cuda::kNotReady, CUDA_ERROR_NOT_READY)
COMPARE(cuda::kLaunchFailed, CUDA_ERROR_LAUNCH_FAILED)
COMPARE(cuda::kClockRate, CU_DEVICE_ATTRIBUTE_CLOCK_RATE)
COMPARE(cuda::kMultiprocessorCount, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)
COMPARE(cuda::kMemoryClockRate, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE)
COMPARE(cuda::kMemoryBusWidth, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH)
COMPARE(cuda::kCapabilityMajor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)
COMPARE(cuda::kCapabilityMinor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)
COMPARE(cuda::kMostSharedBytesByChoice,
        CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)
COMPARE(cuda::kMostDynamicSharedBytes,
        CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)
COMPARE(cuda::kNonBlockingStream, CU_STREAM_NON_BLOCKING)
COMPARE(cuda::kTimingEvent, CU_EVENT_DEFAULT)
COMPARE(cuda::kEventWithoutTiming, CU_EVENT_DISABLE_TIMING)
COMPARE(cuda::kPortableHostMemory, CU_MEMHOSTALLOC_PORTABLE)
COMPARE(cuda::kRelaxedCapture, CU_STREAM_CAPTURE_MODE_RELAXED)
COMPARE(simt::kNotInitialized, CUDA_ERROR_NOT_INITIALIZED)
COMPARE(simt::kInvalidDevice, CUDA_ERROR_INVALID_DEVICE)
COMPARE(simt::kInvalidContext, CUDA_ERROR_INVALID_CONTEXT)
COMPARE(simt::kInvalidHandle, CUDA_ERROR_INVALID_HANDLE)
COMPARE(simt::kIllegalState, CUDA_ERROR_ILLEGAL_STATE)
COMPARE(simt::kCaptureUnsupported, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED)
COMPARE(simt::kCaptureInvalidated, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED)
COMPARE(simt::kCaptureMerge, CUDA_ERROR_STREAM_CAPTURE_MERGE)
COMPARE(simt::kCaptureUnmatched, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED)
COMPARE(simt::kCaptureUnjoined, CUDA_ERROR_STREAM_CAPTURE_UNJOINED)
COMPARE(simt::kCaptureIsolation, CUDA_ERROR_STREAM_CAPTURE_ISOLATION)
COMPARE(simt::kCapturedEvent, CUDA_ERROR_CAPTURED_EVENT)
#undef COMPARE

} // namespace

#else

TEST(CudaHeader, HasTheFunctions) {
  GTEST_SKIP() << "the build has found no cuda.h";
}

#endif
