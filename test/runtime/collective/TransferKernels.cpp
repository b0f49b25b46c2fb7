// SPDX-License-Identifier: Apache-2.0
#include "test/runtime/collective/TransferKernels.h"
#include "runtime/collective/Blocks.h"
#include "runtime/device/cuda/ServiceKernels.h"
#include "runtime/device/simt/Services.h"

#include <cstring>

namespace rota::test {

using namespace cuda;

namespace {

template <typename T> T argument(void *const *arguments, int number) {
  return *static_cast<const T *>(arguments[number]);
}

/// The place of an element of rows, in elements.
int64_t offsetOf(int64_t element, int64_t length, int64_t stride) {
  return element / length * stride + element % length;
}

template <int64_t kBytes> void copyElement(void *const *arguments, int64_t i) {
  int64_t from = offsetOf(i, argument<int64_t>(arguments, 3),
                          argument<int64_t>(arguments, 4));
  int64_t to = offsetOf(i, argument<int64_t>(arguments, 5),
                        argument<int64_t>(arguments, 6));
  std::memcpy(argument<char *>(arguments, 1) + to * kBytes,
              argument<const char *>(arguments, 0) + from * kBytes, kBytes);
}

template <ElementType kType>
void combineElement(void *const *arguments, int64_t i) {
  auto *terms = argument<const Term *>(arguments, 0);
  auto mode = argument<int32_t>(arguments, 7);
  Collective collective;
  collective.kind = Collective::Kind::ReduceScatter;
  collective.type = kType;
  collective.accumulate = mode == kAccumulate;
  collective.maximum = mode == kMaximum;
  std::vector<const void *> places(argument<int64_t>(arguments, 1));
  for (size_t t = 0; t < places.size(); ++t)
    places[t] = static_cast<const char *>(terms[t].data) +
                offsetOf(i, argument<int64_t>(arguments, 4), terms[t].stride) *
                    byteSize(kType);
  int64_t to = offsetOf(i, argument<int64_t>(arguments, 5),
                        argument<int64_t>(arguments, 6));
  combine(collective, places,
          argument<char *>(arguments, 2) + to * byteSize(kType), 1);
}

void note(void *const *arguments, int64_t) {
  __atomic_store_n(argument<int32_t *>(arguments, 0),
                   argument<int32_t>(arguments, 1), __ATOMIC_RELAXED);
}

/// The elements of an emulated thread.
template <void (*element)(void *const *, int64_t), int count>
void runThread(void *const *arguments) {
  int64_t elements = count < 0 ? 1 : argument<int64_t>(arguments, count);
  int64_t threads = int64_t(rotaSimtGridSize(0)) * rotaSimtBlockSize(0);
  for (int64_t i = int64_t(rotaSimtBlockIndex(0)) * rotaSimtBlockSize(0) +
                   rotaSimtThreadIndex(0);
       i < elements; i += threads)
    element(arguments, i);
}

template <void (*element)(void *const *, int64_t), int count>
TransferKernel kernel(const char *name, std::vector<int32_t> argumentBytes) {
  return {name, std::move(argumentBytes), count, element,
          runThread<element, count>};
}

} // namespace

std::span<const TransferKernel> transferKernels() {
  static const std::vector<int32_t> copy(7, 8),
      combined = {8, 8, 8, 8, 8, 8, 8, 4};
  static const TransferKernel kernels[] = {
      kernel<note, -1>(kNoteKernel, {8, 4}),
      kernel<copyElement<2>, 2>(kCopyKernels[0], copy),
      kernel<copyElement<4>, 2>(kCopyKernels[1], copy),
      kernel<combineElement<ElementType::F32>, 3>(kCombineKernels[0], combined),
      kernel<combineElement<ElementType::BF16>, 3>(kCombineKernels[1],
                                                   combined),
      kernel<combineElement<ElementType::I32>, 3>(kCombineKernels[2],
                                                  combined)};
  return kernels;
}

const RotaGpuCode &transferCode() {
  static const std::vector<RotaSimtKernel> kernels = [] {
    std::vector<RotaSimtKernel> all;
    for (const TransferKernel &k : transferKernels())
      all.push_back({k.thread, k.name, nullptr, 0, 0, 0,
                     static_cast<int32_t>(k.argumentBytes.size()),
                     k.argumentBytes.data(), kServiceThreads});
    return all;
  }();
  static const std::vector<const RotaSimtKernel *> image = [] {
    std::vector<const RotaSimtKernel *> all;
    for (const RotaSimtKernel &kernel : kernels)
      all.push_back(&kernel);
    all.push_back(nullptr);
    return all;
  }();
  static const RotaGpuCode code = {
      ROTA_GPU_HOST, 0, image.data(),
      static_cast<int64_t>(image.size() * sizeof image[0])};
  return code;
}

} // namespace rota::test
