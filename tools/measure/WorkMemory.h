// SPDX-License-Identifier: Apache-2.0
//
// Memory of measured work.
#ifndef ROTA_TOOLS_MEASURE_WORKMEMORY_H
#define ROTA_TOOLS_MEASURE_WORKMEMORY_H

#include "runtime/device/cpu/HostArena.h"

#include <algorithm>

namespace rota {

/// Memory as a trainer has it, with huge pages where the host gives them. Its
/// elements are about 1, in f32 as in bf16.
class WorkMemory : public HostArena {
public:
  explicit WorkMemory(int64_t bytes) : HostArena((bytes + 63) / 64 * 64) {
    auto *words = static_cast<uint32_t *>(at(0));
    std::fill_n(words, this->bytes() / 4, 0x3f803f80u);
  }
};

} // namespace rota

#endif // ROTA_TOOLS_MEASURE_WORKMEMORY_H
