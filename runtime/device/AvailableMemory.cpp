// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/AvailableMemory.h"
#include "runtime/device/ControlGroups.h"

#include <algorithm>
#include <charconv>
#include <sys/sysinfo.h>

namespace rota {

/// The number of a limit; INT64_MAX for "max", and where there is no file.
static int64_t bytesOf(const std::string &line) {
  int64_t bytes = 0;
  auto [end, error] =
      std::from_chars(line.data(), line.data() + line.size(), bytes);
  return error == std::errc() ? bytes : INT64_MAX;
}

int64_t controlGroupMemory(const std::string &root) {
  return smallestGroupLimit(
      root, {"memory"}, [](const std::filesystem::path &folder) {
        return std::min(bytesOf(firstLineOf(folder / "memory.max")),
                        bytesOf(firstLineOf(folder / "memory.limit_in_bytes")));
      });
}

/// Bytes of so many units of sysinfo(2).
static int64_t bytesOf(unsigned long units, const struct sysinfo &system) {
  return static_cast<int64_t>(units) * static_cast<int64_t>(system.mem_unit);
}

int64_t availableMemory() {
  struct sysinfo system = {};
  int64_t machine =
      sysinfo(&system) == 0 ? bytesOf(system.totalram, system) : INT64_MAX;
  return std::min(machine, controlGroupMemory());
}

int64_t swapSpace() {
  struct sysinfo system = {};
  return sysinfo(&system) == 0 ? bytesOf(system.totalswap, system) : 0;
}

} // namespace rota
