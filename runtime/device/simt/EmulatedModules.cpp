// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/simt/EmulatedModules.h"
#include "runtime/Error.h"
#include "runtime/device/simt/DriverResults.h"

#include <cstring>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace rota::simt {

using cuda::Result;

/// Bounds of a grid and a block by dimension.
static constexpr Size kMostBlocks = {0x7FFFFFFF, 65535, 65535};
static constexpr Size kMostThreads = {kMaxThreads, kMaxThreads, 64};

QueuedLaunch::QueuedLaunch(const RotaSimtKernel &kernel, Size grid, Size block,
                           int64_t sharedBytes, void *const *arguments)
    : kernel(kernel), grid(grid), block(block), sharedBytes(sharedBytes),
      arguments(kernel.argumentCount) {
  for (int32_t i = 0; i < kernel.argumentCount; ++i)
    std::memcpy(this->arguments[i].bytes.data(), arguments[i],
                kernel.argumentBytes[i]);
}

void QueuedLaunch::run(Emulator &emulator, const OrderedOperation &operation,
                       const RunPieces &runPieces) const {
  if (operation.id() != 0)
    emulator.order().name(operation, fmt::format("kernel '{}'", kernel.name));
  std::vector<void *> addresses;
  for (const Argument &argument : arguments)
    addresses.push_back(const_cast<char *>(argument.bytes.data()));
  Launch launch;
  launch.grid = grid;
  launch.block = block;
  launch.sharedBytes = sharedBytes;
  launch.arguments = addresses.data();
  launch.runPieces = runPieces;
  launch.operation = &operation;
  std::vector<std::string> errors = emulator.launch(kernel, launch);
  if (!errors.empty())
    throw RunError(fmt::format("{}", fmt::join(errors, "\n")));
}

Result EmulatedModules::load(cuda::ModuleHandle *module, const void *image,
                             unsigned, int *, void **) {
  if (!image)
    return cuda::kInvalidValue;
  auto loaded = std::make_shared<Module>();
  std::lock_guard lock(mutex);
  for (auto *kernel = static_cast<const RotaSimtKernel *const *>(image);
       *kernel; ++kernel) {
    loaded->emplace((*kernel)->name,
                    functions.add(std::make_shared<Function>(
                        *kernel, kUsualSharedBytes - (*kernel)->sharedBytes)));
    if ((*kernel)->checked)
      order.watch();
  }
  *module = modules.add(std::move(loaded));
  return cuda::kSuccess;
}

Result EmulatedModules::unload(cuda::ModuleHandle module) {
  std::lock_guard lock(mutex);
  std::shared_ptr<Module> unloaded = modules.find(module);
  if (!unloaded)
    return kInvalidHandle;
  for (const auto &[name, function] : *unloaded)
    functions.remove(function);
  modules.remove(module);
  return cuda::kSuccess;
}

Result EmulatedModules::function(cuda::FunctionHandle *function,
                                 cuda::ModuleHandle module, const char *name) {
  std::lock_guard lock(mutex);
  std::shared_ptr<Module> loaded = modules.find(module);
  if (!loaded)
    return kInvalidHandle;
  auto place = loaded->find(std::string_view(name));
  if (place == loaded->end())
    return cuda::kNotFound;
  *function = place->second;
  return cuda::kSuccess;
}

Result EmulatedModules::setAttribute(cuda::FunctionHandle handle, int attribute,
                                     int value) {
  std::lock_guard lock(mutex);
  std::shared_ptr<Function> function = functions.find(handle);
  if (!function)
    return kInvalidHandle;
  if (attribute != cuda::kMostDynamicSharedBytes || value < 0 ||
      value + function->kernel->sharedBytes > kMaxSharedBytes)
    return cuda::kInvalidValue;
  function->mostSharedBytes = value;
  return cuda::kSuccess;
}

static bool isWithin(Size size, Size most) {
  return size.count() > 0 && size.x <= most.x && size.y <= most.y &&
         size.z <= most.z;
}

Result EmulatedModules::prepare(cuda::FunctionHandle handle, Size grid,
                                Size block, unsigned sharedBytes,
                                void *const *arguments,
                                std::shared_ptr<const QueuedLaunch> &launch) {
  std::lock_guard lock(mutex);
  std::shared_ptr<Function> function = functions.find(handle);
  if (!function)
    return kInvalidHandle;
  const RotaSimtKernel &kernel = *function->kernel;
  if (!isWithin(grid, kMostBlocks) || !isWithin(block, kMostThreads) ||
      block.count() > kMaxThreads || sharedBytes > function->mostSharedBytes ||
      (kernel.argumentCount > 0 && !arguments))
    return cuda::kInvalidValue;
  launch = std::make_shared<QueuedLaunch>(kernel, grid, block, sharedBytes,
                                          arguments);
  return cuda::kSuccess;
}

} // namespace rota::simt
