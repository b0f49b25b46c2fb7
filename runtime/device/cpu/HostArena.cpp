// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/cpu/HostArena.h"
#include "runtime/Error.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

namespace rota {

HostArena::HostArena(int64_t bytes) : Arena(bytes) {
  if (bytes <= 0)
    return;
  void *mapped =
      mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE,
           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED)
    throw RunError(fmt::format("cannot map an arena of {} bytes: {}", bytes,
                               std::strerror(errno)));
  base = static_cast<char *>(mapped);
  // Advice only: a kernel without huge pages refuses it and nothing is lost.
  madvise(base, static_cast<size_t>(bytes), MADV_HUGEPAGE);
}

HostArena::~HostArena() {
  if (base)
    munmap(base, static_cast<size_t>(size));
}

int64_t HostArena::highWater() const {
  return base ? highWaterOf(base, size) : 0;
}

int64_t HostArena::residentBytes() const {
  if (!base)
    return 0;
  int64_t page = sysconf(_SC_PAGESIZE);
  std::vector<unsigned char> present((size + page - 1) / page);
  if (mincore(base, static_cast<size_t>(size), present.data()) != 0)
    return 0;
  return page * std::count_if(present.begin(), present.end(),
                              [](unsigned char c) { return c & 1; });
}

} // namespace rota
