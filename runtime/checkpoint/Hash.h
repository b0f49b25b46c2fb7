// SPDX-License-Identifier: Apache-2.0
//
// The hash of bytes in a checkpoint.
#ifndef ROTA_RUNTIME_CHECKPOINT_HASH_H
#define ROTA_RUNTIME_CHECKPOINT_HASH_H

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace rota {

/// XXH3 of 64 bits with the seed 0. https://xxhash.com
uint64_t hashOf(std::string_view bytes);

/// 16 hexadecimal digits.
std::string hexadecimal(uint64_t bits);

/// The JSON object with a first key more, "hash": hashOf the given text. Only
/// the text that was written has that hash: neither spaces nor the order of
/// keys may change.
std::string withHash(std::string object);

/// The hash of bytes that come in pieces.
class RunningHash {
public:
  RunningHash();
  ~RunningHash();
  RunningHash(const RunningHash &) = delete;
  RunningHash &operator=(const RunningHash &) = delete;

  void add(std::string_view bytes);
  uint64_t value() const; // hash of all bytes so far

private:
  struct State; // state of the library
  std::unique_ptr<State> state;
};

} // namespace rota

#endif // ROTA_RUNTIME_CHECKPOINT_HASH_H
