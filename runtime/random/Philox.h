// SPDX-License-Identifier: Apache-2.0
//
// Counter-based random numbers: Philox4x32 with 10 rounds (Salmon, Moraes, Dror
// and Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011). A number
// is a function of (seed, name, stream number, index) alone. It does not depend
// on mesh, schedule, threads or the order of the calls.
//
//   key     = mix(seed xor mix(fnv1a64(name))), low word first
//   counter = (index low, index high, stream low, stream high)
//   mix     = the finalizer of splitmix64
//
// Element i of a tensor uses block i/4. Uniform: word i%4 as u = (w +
// 1/2)/2^32. Normal (Box and Muller): words (0, 1) give elements 0 and 1 of the
// block and words (2, 3) elements 2 and 3, as r cos(t) and r sin(t) with r =
// sqrt(-2 ln u) of the first word and t = 2 pi u of the second, in f64.
#ifndef ROTA_RUNTIME_RANDOM_PHILOX_H
#define ROTA_RUNTIME_RANDOM_PHILOX_H

#include <array>
#include <cstdint>
#include <string_view>

namespace rota {

using PhiloxBlock = std::array<uint32_t, 4>;

/// The ten rounds.
PhiloxBlock philox(PhiloxBlock counter, std::array<uint32_t, 2> key);

class RandomStream {
public:
  RandomStream(uint64_t seed, std::string_view name, int64_t stream);

  PhiloxBlock block(uint64_t index) const;
  /// 64 random bits.
  uint64_t bits(uint64_t index) const;
  /// A number in [0, bound), bound > 0.
  int64_t below(uint64_t index, int64_t bound) const;

  /// Elements [begin, end) of the tensor, to out[0 ..]: mean + deviation * n.
  void normal(int64_t begin, int64_t end, double mean, double deviation,
              float *out) const;
  /// Likewise low + (high - low) * u.
  void uniform(int64_t begin, int64_t end, double low, double high,
               float *out) const;

private:
  std::array<uint32_t, 2> key;
  uint64_t stream;
};

} // namespace rota

#endif // ROTA_RUNTIME_RANDOM_PHILOX_H
