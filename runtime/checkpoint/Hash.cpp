// SPDX-License-Identifier: Apache-2.0
#include "runtime/checkpoint/Hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace rota {

uint64_t hashOf(std::string_view bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

} // namespace rota
