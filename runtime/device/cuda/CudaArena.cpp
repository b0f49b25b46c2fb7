// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/cuda/CudaArena.h"
#include "runtime/device/cuda/CudaDevice.h"

#include <algorithm>
#include <fmt/format.h>

namespace rota::cuda {

CudaArena::CudaArena(CudaDevice &device, int64_t bytes)
    : Arena(bytes), device(device) {
  if (bytes <= 0)
    return;
  Gpu &gpu = device.gpu();
  gpu.use();
  Address address = 0;
  Result result = gpu.api().allocate(&address, static_cast<size_t>(bytes));
  if (result == kOutOfMemory) {
    size_t free = 0, total = 0;
    gpu.api().memoryInfo(&free, &total);
    throw RunError(fmt::format("{}: expected {} bytes of free memory for an "
                               "arena, got {} of {}",
                               gpu.name(), bytes, free, total));
  }
  gpu.check(result, "allocating an arena");
  base = reinterpret_cast<char *>(address);
  device.zero(nullptr, base, bytes);
}

CudaArena::~CudaArena() {
  Gpu &gpu = device.gpu();
  gpu.enter();
  if (!base)
    return;
  gpu.api().synchronizeStream(device.computeStream());
  gpu.api().free(reinterpret_cast<Address>(base));
}

int64_t CudaArena::highWater() const {
  constexpr int64_t kPiece = 1 << 20;
  std::vector<char> piece;
  for (int64_t end = size, begin; end > 0; end = begin) {
    begin = (end - 1) / kPiece * kPiece;
    piece.resize(static_cast<size_t>(end - begin));
    device.read(base + begin, piece.data(), end - begin);
    if (int64_t last = highWaterOf(piece.data(), end - begin); last > 0)
      return begin + last;
  }
  return 0;
}

} // namespace rota::cuda
