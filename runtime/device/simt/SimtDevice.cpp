// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/simt/SimtDevice.h"

namespace rota {

SimtDevice::SimtDevice(std::span<const RotaGpuCode> code) {
  for (const RotaGpuCode &form : code)
    if (form.form == ROTA_GPU_HOST)
      for (auto *kernel = static_cast<const RotaSimtKernel *const *>(form.data);
           *kernel; ++kernel)
        kernels[(*kernel)->name] = *kernel;
}

std::unique_ptr<Arena> SimtDevice::makeArena(int64_t bytes) {
  std::unique_ptr<Arena> arena = CpuDevice::makeArena(bytes);
  if (bytes > 0)
    emulator.addBuffer("arena", arena->at(0), static_cast<size_t>(bytes));
  return arena;
}

void SimtDevice::launch(RotaContext *context, RotaKernel kernel,
                        void *const *args, int64_t, int64_t) {
  auto &form = *static_cast<const RotaGpuLaunch *>(kernel);
  auto found = kernels.find(form.name);
  if (found == kernels.end())
    return reportFailure(context, std::string("expected the kernel '") +
                                      form.name + "' in the code for hosts");
  std::vector<const void *> addresses; // of the arguments
  for (int64_t i = 0; i < form.arguments; ++i)
    addresses.push_back(&args[i]);
  simt::Launch launch;
  launch.grid = {form.grid[0], form.grid[1], form.grid[2]};
  launch.block = {form.block, 1, 1};
  launch.sharedBytes = form.sharedBytes;
  launch.arguments = const_cast<void *const *>(
      reinterpret_cast<const void *const *>(addresses.data()));
  launch.runPieces = [&](int64_t pieces,
                         const std::function<void(int64_t)> &body) {
    parallelPieces(context, pieces, body);
  };
  std::vector<std::string> errors = emulator.launch(*found->second, launch);
  if (!errors.empty())
    reportFailure(context, errors.front());
}

} // namespace rota
