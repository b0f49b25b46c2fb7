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

/// Bytes of a huge page on most machines. An arena begins at a multiple of it,
/// as some kernels would not have it.
static constexpr int64_t kHugePage = int64_t(1) << 21;

HostArena::HostArena(int64_t bytes) : Arena(bytes) {
  if (bytes <= 0)
    return;
  void *mapped =
      mmap(nullptr, static_cast<size_t>(bytes + kHugePage),
           PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED)
    throw RunError(fmt::format("cannot map an arena of {} bytes: {}", bytes,
                               std::strerror(errno)));
  mapping = mapped;
  auto address = reinterpret_cast<uintptr_t>(mapping);
  base = static_cast<char *>(mapping) + (-address & (kHugePage - 1));
  // Advice only: a kernel without huge pages refuses it and nothing is lost.
  madvise(base, static_cast<size_t>(bytes), MADV_HUGEPAGE);
}

HostArena::~HostArena() {
  if (mapping)
    munmap(mapping, static_cast<size_t>(size + kHugePage));
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

void HostArena::populate(int64_t begin, int64_t count) const {
  // Advice only: Linux before 5.14 does not know it.
  madvise(base + begin, static_cast<size_t>(count), MADV_POPULATE_WRITE);
}

} // namespace rota
