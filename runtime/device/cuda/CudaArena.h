// SPDX-License-Identifier: Apache-2.0
//
// Arenas in the memory of a GPU, and in host memory that it can reach.
#ifndef ROTA_RUNTIME_DEVICE_CUDA_CUDAARENA_H
#define ROTA_RUNTIME_DEVICE_CUDA_CUDAARENA_H

#include "runtime/device/cuda/PinnedMemory.h"

namespace rota::cuda {

class CudaDevice;

class CudaArena : public Arena {
public:
  CudaArena(CudaDevice &device, int64_t bytes);
  ~CudaArena() override;
  int64_t highWater() const override;
  int64_t residentBytes() const override { return size; }

private:
  CudaDevice &device;
};

class PinnedArena : public Arena {
public:
  PinnedArena(Gpu &gpu, int64_t bytes) : Arena(bytes), buffer(gpu, bytes) {
    base = buffer.data();
  }
  int64_t highWater() const override {
    return base ? highWaterOf(base, size) : 0;
  }
  int64_t residentBytes() const override { return size; }

private:
  PinnedBuffer buffer;
};

} // namespace rota::cuda

#endif // ROTA_RUNTIME_DEVICE_CUDA_CUDAARENA_H
