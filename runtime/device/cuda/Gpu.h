// SPDX-License-Identifier: Apache-2.0
//
// One GPU as a process sees it: its context and the code of the trainer's
// kernels on it.
#ifndef ROTA_RUNTIME_DEVICE_CUDA_GPU_H
#define ROTA_RUNTIME_DEVICE_CUDA_GPU_H

#include "runtime/Abi.h"
#include "runtime/device/cuda/DriverApi.h"

#include <atomic>
#include <map>
#include <mutex>
#include <span>
#include <string>

namespace rota::cuda {

/// Shared by the ranks of a process; any thread may call.
class Gpu {
public:
  /// Takes the GPU with that number and loads the form of `code` that fits it
  /// best: a cubin for its architecture, else the newest PTX that it can run.
  /// Throws InputError when there is no such GPU, or no code for it.
  Gpu(const DriverApi &api, int ordinal, std::span<const RotaGpuCode> code);
  ~Gpu();
  Gpu(const Gpu &) = delete;
  Gpu &operator=(const Gpu &) = delete;

  const DriverApi &api() const { return driver; }
  /// Makes this GPU that of the calling thread. Each thread does so before it
  /// calls the driver. `enter` returns the driver's answer, for destructors.
  void use() const;
  /// While ranks on several threads record into one graph, their calls of the
  /// driver come one at a time: CUDA does not say that threads may use one
  /// capture at once. The lock is held only then; its thread may take it again.
  using CallLock = std::unique_lock<std::recursive_mutex>;
  CallLock oneAtATime() const;
  /// Called while no rank asks for anything.
  void shareRecording(bool isShared) { isRecordingShared = isShared; }
  Result enter() const;

  /// "NVIDIA H100 80GB HBM3".
  const std::string &name() const { return deviceName; }
  /// 90 for sm_90; 0 for the emulated GPU.
  int architecture() const { return capability; }
  int multiprocessors() const { return processors; }
  bool isEmulated() const { return driver.failureReport != nullptr; }

  /// Dynamic shared memory of a launch in the form of the loaded code.
  int64_t sharedBytesOf(const RotaGpuLaunch &launch) const;
  /// A kernel of the loaded code, with leave for that much dynamic shared
  /// memory. Throws RunError when there is none of that name, or the GPU has
  /// less memory for a block.
  FunctionHandle function(const char *name, int64_t sharedBytes);

  /// Throws DeviceError with the driver's words when `result` is an error: "GPU
  /// 0 (NVIDIA H100): what: out of memory (CUDA_ERROR_OUT_OF_MEMORY)". The
  /// report of an emulated kernel takes the place of the driver's words.
  void check(Result result, const char *what) const;

private:
  void load(std::span<const RotaGpuCode> code);

  const DriverApi &driver;
  Ordinal device = 0;
  int number, capability = 0, processors = 1;
  int64_t mostSharedBytes = 0; // of a block
  int32_t loadedForm = ROTA_GPU_PTX;
  std::string deviceName;
  ContextHandle context = nullptr;
  ModuleHandle module = nullptr;
  mutable std::recursive_mutex calls;
  std::atomic<bool> isRecordingShared = false;
  std::mutex mutex;
  std::map<std::string, FunctionHandle, std::less<>> functions; // guarded
};

/// Events and streams that end with their owner. The GPU must outlive them.
class OwnedStream {
public:
  explicit OwnedStream(Gpu &gpu);
  ~OwnedStream();
  OwnedStream(const OwnedStream &) = delete;
  OwnedStream &operator=(const OwnedStream &) = delete;
  StreamHandle get() const { return stream; }

private:
  Gpu &gpu;
  StreamHandle stream = nullptr;
};

class OwnedEvent {
public:
  OwnedEvent(Gpu &gpu, bool timing);
  ~OwnedEvent();
  OwnedEvent(const OwnedEvent &) = delete;
  OwnedEvent &operator=(const OwnedEvent &) = delete;
  EventHandle get() const { return event; }

private:
  Gpu &gpu;
  EventHandle event = nullptr;
};

} // namespace rota::cuda

#endif // ROTA_RUNTIME_DEVICE_CUDA_GPU_H
