// SPDX-License-Identifier: Apache-2.0
//
// The hash of bytes in a checkpoint.
#ifndef ROTA_RUNTIME_CHECKPOINT_HASH_H
#define ROTA_RUNTIME_CHECKPOINT_HASH_H

#include <cstdint>
#include <string_view>

namespace rota {

/// XXH3 of 64 bits with the seed 0. https://xxhash.com
uint64_t hashOf(std::string_view bytes);

} // namespace rota

#endif // ROTA_RUNTIME_CHECKPOINT_HASH_H
