// SPDX-License-Identifier: Apache-2.0
//
// A thread's part of the products of warpgroups (wgmma) that it has started and
// not waited for: what they read of shared memory, and their sums.
#ifndef ROTA_RUNTIME_DEVICE_SIMT_PENDINGPRODUCTS_H
#define ROTA_RUNTIME_DEVICE_SIMT_PENDINGPRODUCTS_H

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

namespace rota::simt {

/// Bytes that a product reads, by their address.
struct ProductRead {
  const void *address;
  uint64_t bytes;
  uint32_t site;
};

class PendingProducts {
public:
  void clear();

  /// A read of the group that is not committed yet.
  void addRead(const ProductRead &read) { reads.push_back({read, committed}); }
  /// Keeps sums of that group, and puts numbers in their places that stand for
  /// them: NaNs with a payload.
  void hold(std::span<float> sums, uint32_t site);
  void commit() { ++committed; }
  /// Waits until at most `pending` groups are not complete.
  void wait(uint64_t pending);
  /// The oldest read of a group that is complete, once; or nothing.
  std::optional<ProductRead> takeCompleteRead();
  /// The oldest read of all; or nothing.
  std::optional<ProductRead> firstRead() const;

  /// Puts sums back in place of the numbers that stand for them. Returns the
  /// site of a product whose sums are not complete; 0: there is none.
  uint32_t takeSums(std::span<float> sums);

private:
  struct Read {
    ProductRead read;
    uint64_t group;
  };
  struct Held {
    uint32_t number = 0;
    float value = 0.0f;
    uint64_t group = 0;
    uint32_t site = 0;
  };

  uint64_t committed = 0, complete = 0; // groups
  std::deque<Read> reads;               // oldest first
  uint32_t lastNumber = 0;
  std::vector<Held> held; // by number, modulo its size
};

} // namespace rota::simt

#endif // ROTA_RUNTIME_DEVICE_SIMT_PENDINGPRODUCTS_H
