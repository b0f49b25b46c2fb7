// SPDX-License-Identifier: Apache-2.0
//
// The code that an emulated GPU has loaded, and launches of it.
#ifndef ROTA_RUNTIME_DEVICE_SIMT_EMULATEDMODULES_H
#define ROTA_RUNTIME_DEVICE_SIMT_EMULATEDMODULES_H

#include "runtime/device/cuda/DriverApi.h"
#include "runtime/device/simt/Handles.h"
#include "runtime/device/simt/Simt.h"

#include <array>
#include <map>

namespace rota::simt {

/// The most shared memory of a launch of a function that has no leave for more.
inline constexpr int64_t kUsualSharedBytes = 48 << 10;

/// A launch that was asked for, with its own copy of the arguments.
class QueuedLaunch {
public:
  QueuedLaunch(const RotaSimtKernel &kernel, Size grid, Size block,
               int64_t sharedBytes, void *const *arguments);

  /// Throws RunError with the emulator's report.
  void run(Emulator &emulator, const OrderedOperation &operation,
           const RunPieces &runPieces) const;

private:
  struct alignas(16) Argument {
    std::array<char, 16> bytes;
  };
  const RotaSimtKernel &kernel;
  Size grid, block;
  int64_t sharedBytes;
  std::vector<Argument> arguments;
};

/// Any thread may call. Functions that return a Result are those of the driver
/// API.
class EmulatedModules {
public:
  /// Code with checks makes the GPU watch the order of operations.
  explicit EmulatedModules(StreamOrder &order) : order(order) {}

  /// `image` is the array of kernels of ROTA_GPU_HOST in runtime/Abi.h.
  cuda::Result load(cuda::ModuleHandle *module, const void *image,
                    unsigned count, int *options, void **values);
  cuda::Result unload(cuda::ModuleHandle module);
  cuda::Result function(cuda::FunctionHandle *function,
                        cuda::ModuleHandle module, const char *name);
  cuda::Result setAttribute(cuda::FunctionHandle function, int attribute,
                            int value);

  /// Makes `launch` if it keeps the limits of a GPU.
  cuda::Result prepare(cuda::FunctionHandle function, Size grid, Size block,
                       unsigned sharedBytes, void *const *arguments,
                       std::shared_ptr<const QueuedLaunch> &launch);

private:
  struct Function {
    const RotaSimtKernel *kernel;
    int64_t mostSharedBytes; // dynamic ones
  };
  using Module = std::map<std::string, cuda::FunctionHandle, std::less<>>;

  StreamOrder &order;
  std::mutex mutex;
  Handles<cuda::ModuleHandle, Module> modules;
  Handles<cuda::FunctionHandle, Function> functions;
};

} // namespace rota::simt

#endif // ROTA_RUNTIME_DEVICE_SIMT_EMULATEDMODULES_H
