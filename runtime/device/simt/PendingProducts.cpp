// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/simt/PendingProducts.h"

#include <algorithm>
#include <bit>

namespace rota::simt {

/// A quiet NaN whose low bits are the number of a sum. Arithmetic makes no such
/// NaN: its payload is 0.
static constexpr uint32_t kStandIn = 0x7FE00000, kNumberBits = 0x000FFFFF;
/// More sums than a thread has registers; a power of two.
static constexpr uint32_t kMostHeld = 1024;

void PendingProducts::clear() {
  reads.clear();
  committed = complete = 0;
  lastNumber = 0;
  std::fill(held.begin(), held.end(), Held());
}

void PendingProducts::hold(std::span<float> sums, uint32_t site) {
  held.resize(kMostHeld);
  for (float &sum : sums) {
    lastNumber = lastNumber % kNumberBits + 1;
    held[lastNumber % kMostHeld] = {lastNumber, sum, committed, site};
    sum = std::bit_cast<float>(kStandIn | lastNumber);
  }
}

void PendingProducts::wait(uint64_t pending) {
  if (committed > pending)
    complete = std::max(complete, committed - pending);
}

std::optional<ProductRead> PendingProducts::takeCompleteRead() {
  if (reads.empty() || reads.front().group >= complete)
    return std::nullopt;
  ProductRead read = reads.front().read;
  reads.pop_front();
  return read;
}

std::optional<ProductRead> PendingProducts::firstRead() const {
  return reads.empty() ? std::nullopt : std::optional(reads.front().read);
}

uint32_t PendingProducts::takeSums(std::span<float> sums) {
  uint32_t early = 0;
  for (float &sum : sums) {
    auto bits = std::bit_cast<uint32_t>(sum);
    uint32_t number = bits & kNumberBits;
    if ((bits & ~kNumberBits) != kStandIn || held.empty())
      continue;
    const Held &kept = held[number % kMostHeld];
    if (kept.number != number)
      continue;
    if (kept.group >= complete && early == 0)
      early = kept.site;
    sum = kept.value;
  }
  return early;
}

} // namespace rota::simt
