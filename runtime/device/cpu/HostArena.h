// SPDX-License-Identifier: Apache-2.0
//
// Host memory: one anonymous mapping, with huge pages wherever they fit.
#ifndef ROTA_RUNTIME_DEVICE_CPU_HOSTARENA_H
#define ROTA_RUNTIME_DEVICE_CPU_HOSTARENA_H

#include "runtime/device/Device.h"

namespace rota {

class HostArena : public Arena {
public:
  /// Throws RunError when the system has not that much memory to give.
  explicit HostArena(int64_t bytes);
  ~HostArena() override;

  int64_t highWater() const override;
  /// A multiple of the page size, of 2 MiB where the system gave huge pages.
  int64_t residentBytes() const override;
  void populate(int64_t begin, int64_t count) const override;

private:
  void *mapping = nullptr; // of `size` bytes and a huge page
};

} // namespace rota

#endif // ROTA_RUNTIME_DEVICE_CPU_HOSTARENA_H
