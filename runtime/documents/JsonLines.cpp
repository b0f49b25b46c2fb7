// SPDX-License-Identifier: Apache-2.0
#include "runtime/documents/JsonLines.h"
#include "runtime/Error.h"

#include <fmt/format.h>

namespace rota {

static constexpr size_t kRead = 256 << 10; // bytes of a read

/// The next line, blank or not; false: there is none.
bool LineReader::take(std::string &line) {
  size_t searched = used;
  for (;;) {
    size_t end = buffer.find('\n', searched);
    if (end != buffer.npos) {
      line.assign(buffer, used, end - used);
      bytes += static_cast<int64_t>(line.size()) + 1;
      used = end + 1;
      ++lines;
      return true;
    }
    if (buffer.size() - used > kMostBytes)
      throw InputError(
          fmt::format("'{}': line {}: expected at most {} bytes, got more",
                      input->path(), lines + 1, kMostBytes));
    buffer.erase(0, used);
    used = 0;
    searched = buffer.size();
    buffer.resize(searched + kRead);
    size_t got = input->read(buffer.data() + searched, kRead);
    buffer.resize(searched + got);
    if (got > 0)
      continue;
    line = std::move(buffer);
    buffer.clear();
    bytes += static_cast<int64_t>(line.size());
    lines += !line.empty();
    return !line.empty();
  }
}

bool LineReader::next(std::string &line) {
  while (take(line))
    if (line.find_first_not_of(" \t\r") != line.npos)
      return true;
  return false;
}

} // namespace rota
