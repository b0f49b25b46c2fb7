// SPDX-License-Identifier: Apache-2.0
//
// Misses of the data TLB in this process, where the machine counts them.
#ifndef ROTA_TOOLS_BENCH_TLBMISSES_H
#define ROTA_TOOLS_BENCH_TLBMISSES_H

#include <cstdint>
#include <optional>
#include <string>

namespace rota::bench {

class TlbMisses {
public:
  /// Counts on the calling thread and on threads that it starts later.
  TlbMisses();
  ~TlbMisses();
  TlbMisses(const TlbMisses &) = delete;
  TlbMisses &operator=(const TlbMisses &) = delete;

  /// Why nothing is counted, if so.
  std::optional<std::string> fault() const { return reason; }
  /// Misses of loads so far; 0 where nothing is counted.
  int64_t read() const;

private:
  int counter = -1; // file descriptor
  std::optional<std::string> reason;
};

} // namespace rota::bench

#endif // ROTA_TOOLS_BENCH_TLBMISSES_H
