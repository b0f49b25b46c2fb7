// SPDX-License-Identifier: Apache-2.0
//
// Files of a fuzzer's input. An input is cut into several files: before each
// but the last stand two bytes, its size in little endian.
#ifndef ROTA_TEST_FUZZ_FUZZFILES_H
#define ROTA_TEST_FUZZ_FUZZFILES_H

#include "test/runtime/TemporaryFolder.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

namespace rota::test {

/// The rest of an input. Past its end there are zeros and empty texts.
class FuzzInput {
public:
  FuzzInput(const uint8_t *data, size_t size)
      : rest(reinterpret_cast<const char *>(data), size) {}

  uint8_t byte() {
    std::string_view one = take(1);
    return one.empty() ? 0 : static_cast<uint8_t>(one[0]);
  }
  /// The next file but the last.
  std::string_view file() {
    size_t low = byte(), high = byte();
    return take(low | high << 8);
  }
  std::string_view last() const { return rest; }

private:
  std::string_view take(size_t count) {
    std::string_view taken = rest.substr(0, count);
    rest.remove_prefix(taken.size());
    return taken;
  }

  std::string_view rest;
};

/// The folder of this process; removed at its end.
inline const TemporaryFolder &fuzzFolder() {
  static const TemporaryFolder folder;
  return folder;
}

} // namespace rota::test

#endif // ROTA_TEST_FUZZ_FUZZFILES_H
