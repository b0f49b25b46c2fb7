// SPDX-License-Identifier: Apache-2.0
//
// The part of the CUDA driver API that the runtime calls, declared here so that
// neither the compiler nor a trainer needs the CUDA Toolkit. NVIDIA's driver
// and the emulated GPU (device/simt/EmulatedDriver.h) both fill this table. The
// layouts and numbers are those of cuda.h, which keeps them stable.
#ifndef ROTA_RUNTIME_DEVICE_CUDA_DRIVERAPI_H
#define ROTA_RUNTIME_DEVICE_CUDA_DRIVERAPI_H

#include <cstddef>
#include <cstdint>

// The tags of cuda.h.
struct CUctx_st;
struct CUmod_st;
struct CUfunc_st;
struct CUstream_st;
struct CUevent_st;
struct CUgraph_st;
struct CUgraphExec_st;
struct CUgraphNode_st;

namespace rota::cuda {

using Result = int;
inline constexpr Result kSuccess = 0;
inline constexpr Result kInvalidValue = 1;
inline constexpr Result kOutOfMemory = 2;
inline constexpr Result kNoDevice = 100;
inline constexpr Result kNoBinaryForGpu = 209;
inline constexpr Result kInvalidPtx = 218;
inline constexpr Result kUnsupportedPtxVersion = 222;
inline constexpr Result kNotFound = 500;
inline constexpr Result kNotReady = 600;
inline constexpr Result kLaunchFailed = 719;
inline constexpr Result kNotSupported = 801;

using Ordinal = int; // CUdevice
using ContextHandle = CUctx_st *;
using ModuleHandle = CUmod_st *;
using FunctionHandle = CUfunc_st *;
using StreamHandle = CUstream_st *;
using EventHandle = CUevent_st *;
using GraphHandle = CUgraph_st *;
using GraphExecHandle = CUgraphExec_st *;
using Address = unsigned long long; // CUdeviceptr

// CUdevice_attribute
inline constexpr int kClockRate = 13; // kilohertz
inline constexpr int kMultiprocessorCount = 16;
inline constexpr int kMemoryClockRate = 36; // kilohertz
inline constexpr int kMemoryBusWidth = 37;  // bits
inline constexpr int kCapabilityMajor = 75;
inline constexpr int kCapabilityMinor = 76;
inline constexpr int kMostSharedBytesByChoice = 97;
// CUfunction_attribute
inline constexpr int kMostDynamicSharedBytes = 8;
// Flags of cuStreamCreate, cuEventCreate, cuMemHostAlloc.
inline constexpr unsigned kNonBlockingStream = 1;
inline constexpr unsigned kTimingEvent = 0;
inline constexpr unsigned kEventWithoutTiming = 2;
inline constexpr unsigned kPortableHostMemory = 1;
// CUstreamCaptureMode
inline constexpr int kRelaxedCapture = 2;
// CUstreamCaptureStatus
inline constexpr int kNoCapture = 0;

/// X(member, symbol of the library, parameters)
#define ROTA_CUDA_DRIVER_FUNCTIONS(X)                                          \
  X(init, "cuInit", (unsigned flags))                                          \
  X(driverVersion, "cuDriverGetVersion", (int *version))                       \
  X(deviceCount, "cuDeviceGetCount", (int *count))                             \
  X(device, "cuDeviceGet", (Ordinal * device, int ordinal))                    \
  X(deviceName, "cuDeviceGetName", (char *name, int length, Ordinal device))   \
  X(deviceAttribute, "cuDeviceGetAttribute",                                   \
    (int *value, int attribute, Ordinal device))                               \
  X(retainContext, "cuDevicePrimaryCtxRetain",                                 \
    (ContextHandle * context, Ordinal device))                                 \
  X(releaseContext, "cuDevicePrimaryCtxRelease_v2", (Ordinal device))          \
  X(setContext, "cuCtxSetCurrent", (ContextHandle context))                    \
  X(memoryInfo, "cuMemGetInfo_v2", (size_t *free, size_t *total))              \
  X(allocate, "cuMemAlloc_v2", (Address * address, size_t bytes))              \
  X(free, "cuMemFree_v2", (Address address))                                   \
  X(allocateInStream, "cuMemAllocAsync",                                       \
    (Address * address, size_t bytes, StreamHandle stream))                    \
  X(freeInStream, "cuMemFreeAsync", (Address address, StreamHandle stream))    \
  X(allocateHost, "cuMemHostAlloc",                                            \
    (void **address, size_t bytes, unsigned flags))                            \
  X(freeHost, "cuMemFreeHost", (void *address))                                \
  X(copy, "cuMemcpyAsync",                                                     \
    (Address destination, Address source, size_t bytes, StreamHandle stream))  \
  X(fill8, "cuMemsetD8Async",                                                  \
    (Address destination, unsigned char value, size_t count,                   \
     StreamHandle stream))                                                     \
  X(createStream, "cuStreamCreate", (StreamHandle * stream, unsigned flags))   \
  X(destroyStream, "cuStreamDestroy_v2", (StreamHandle stream))                \
  X(synchronizeStream, "cuStreamSynchronize", (StreamHandle stream))           \
  X(waitEvent, "cuStreamWaitEvent",                                            \
    (StreamHandle stream, EventHandle event, unsigned flags))                  \
  X(createEvent, "cuEventCreate", (EventHandle * event, unsigned flags))       \
  X(destroyEvent, "cuEventDestroy_v2", (EventHandle event))                    \
  X(recordEvent, "cuEventRecord", (EventHandle event, StreamHandle stream))    \
  X(queryEvent, "cuEventQuery", (EventHandle event))                           \
  X(synchronizeEvent, "cuEventSynchronize", (EventHandle event))               \
  X(elapsedTime, "cuEventElapsedTime",                                         \
    (float *milliseconds, EventHandle begin, EventHandle end))                 \
  X(loadModule, "cuModuleLoadDataEx",                                          \
    (ModuleHandle * module, const void *image, unsigned count, int *options,   \
     void **values))                                                           \
  X(unloadModule, "cuModuleUnload", (ModuleHandle module))                     \
  X(moduleFunction, "cuModuleGetFunction",                                     \
    (FunctionHandle * function, ModuleHandle module, const char *name))        \
  X(setFunctionAttribute, "cuFuncSetAttribute",                                \
    (FunctionHandle function, int attribute, int value))                       \
  X(launch, "cuLaunchKernel",                                                  \
    (FunctionHandle function, unsigned gridX, unsigned gridY, unsigned gridZ,  \
     unsigned blockX, unsigned blockY, unsigned blockZ, unsigned sharedBytes,  \
     StreamHandle stream, void **arguments, void **extra))                     \
  X(beginCapture, "cuStreamBeginCapture_v2", (StreamHandle stream, int mode))  \
  X(endCapture, "cuStreamEndCapture",                                          \
    (StreamHandle stream, GraphHandle * graph))                                \
  X(captureStatus, "cuStreamIsCapturing", (StreamHandle stream, int *status))  \
  X(instantiateGraph, "cuGraphInstantiateWithFlags",                           \
    (GraphExecHandle * executable, GraphHandle graph,                          \
     unsigned long long flags))                                                \
  X(launchGraph, "cuGraphLaunch",                                              \
    (GraphExecHandle executable, StreamHandle stream))                         \
  X(destroyGraphExec, "cuGraphExecDestroy", (GraphExecHandle executable))      \
  X(destroyGraph, "cuGraphDestroy", (GraphHandle graph))                       \
  X(errorName, "cuGetErrorName", (Result result, const char **text))           \
  X(errorText, "cuGetErrorString", (Result result, const char **text))

struct DriverApi {
#define X(member, symbol, parameters) Result(*member) parameters = nullptr;
  ROTA_CUDA_DRIVER_FUNCTIONS(X)
#undef X
  /// The emulated GPU's report of the kernel that failed on the current
  /// context: lines of text, empty before. Null for NVIDIA's driver.
  const char *(*failureReport)() = nullptr;
};

/// The functions of libcuda.so.1, which is loaded once. Throws InputError that
/// says what is missing: the library, one of its functions, a GPU.
const DriverApi &loadDriver();

} // namespace rota::cuda

#endif // ROTA_RUNTIME_DEVICE_CUDA_DRIVERAPI_H
