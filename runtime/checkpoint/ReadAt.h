// SPDX-License-Identifier: Apache-2.0
//
// Bytes of an open file.
#ifndef ROTA_RUNTIME_CHECKPOINT_READAT_H
#define ROTA_RUNTIME_CHECKPOINT_READAT_H

#include <cerrno>
#include <cstdint>
#include <span>
#include <unistd.h>

namespace rota {

/// Reads the bytes from `offset` on. Returns how many there were, fewer than
/// asked for at the end of the file only; -1: `errno` says why.
inline int64_t readAt(int file, int64_t offset, std::span<char> out) {
  int64_t done = 0;
  while (!out.empty()) {
    ssize_t got = pread(file, out.data(), out.size(), offset + done);
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0)
      return -1;
    if (got == 0)
      break;
    out = out.subspan(static_cast<size_t>(got));
    done += got;
  }
  return done;
}

} // namespace rota

#endif // ROTA_RUNTIME_CHECKPOINT_READAT_H
