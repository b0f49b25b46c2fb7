// SPDX-License-Identifier: Apache-2.0
#include "runtime/checkpoint/Hash.h"

#include <fmt/format.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace rota {

uint64_t hashOf(std::string_view bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

std::string hexadecimal(uint64_t bits) { return fmt::format("{:016x}", bits); }

std::string withHash(std::string object) {
  return object.insert(
      1, fmt::format("\n\"hash\": \"{}\",", hexadecimal(hashOf(object))));
}

struct RunningHash::State {
  XXH3_state_t hash;
};

RunningHash::RunningHash() : state(std::make_unique<State>()) {
  XXH3_64bits_reset(&state->hash);
}

RunningHash::~RunningHash() = default;

void RunningHash::add(std::string_view bytes) {
  XXH3_64bits_update(&state->hash, bytes.data(), bytes.size());
}

uint64_t RunningHash::value() const { return XXH3_64bits_digest(&state->hash); }

} // namespace rota
