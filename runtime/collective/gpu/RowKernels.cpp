// SPDX-License-Identifier: Apache-2.0
#include "runtime/collective/gpu/RowKernels.h"

namespace rota {

void copyRows(cuda::CudaDevice &device, const TransferBlock &block,
              int64_t elementBytes, const void *source, void *destination,
              cuda::StreamHandle stream) {
  TransferRows from = block.source, to = block.destination;
  int64_t count = to.count();
  const void *first =
      static_cast<const char *>(source) + from.offset * elementBytes;
  void *out = static_cast<char *>(destination) + to.offset * elementBytes;
  void *arguments[] = {&first,       &out,       &count,    &from.length,
                       &from.stride, &to.length, &to.stride};
  device.launchService(cuda::kCopyKernels[elementBytes == 4], count, arguments,
                       stream);
}

cuda::CombineMode combineModeOf(const Collective &collective) {
  if (collective.maximum)
    return cuda::kMaximum;
  return collective.kind == Collective::Kind::ReduceScatter &&
                 collective.accumulate
             ? cuda::kAccumulate
             : cuda::kSum;
}

} // namespace rota
