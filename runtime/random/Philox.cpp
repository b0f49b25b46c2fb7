// SPDX-License-Identifier: Apache-2.0
#include "runtime/random/Philox.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace rota {

PhiloxBlock philox(PhiloxBlock c, std::array<uint32_t, 2> key) {
  constexpr uint64_t kMultiplier0 = 0xD2511F53, kMultiplier1 = 0xCD9E8D57;
  constexpr uint32_t kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;
  for (int round = 0; round < 10; ++round) {
    uint64_t p0 = kMultiplier0 * c[0], p1 = kMultiplier1 * c[2];
    c = {static_cast<uint32_t>(p1 >> 32) ^ c[1] ^ key[0],
         static_cast<uint32_t>(p1),
         static_cast<uint32_t>(p0 >> 32) ^ c[3] ^ key[1],
         static_cast<uint32_t>(p0)};
    key[0] += kWeyl0;
    key[1] += kWeyl1;
  }
  return c;
}

static uint64_t mix(uint64_t x) {
  x ^= x >> 30;
  x *= 0xBF58476D1CE4E5B9ull;
  x ^= x >> 27;
  x *= 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

static uint64_t fnv1a64(std::string_view text) {
  uint64_t hash = 0xCBF29CE484222325ull;
  for (unsigned char c : text)
    hash = (hash ^ c) * 0x100000001B3ull;
  return hash;
}

RandomStream::RandomStream(uint64_t seed, std::string_view name, int64_t stream)
    : stream(static_cast<uint64_t>(stream)) {
  uint64_t wide = mix(seed ^ mix(fnv1a64(name)));
  key = {static_cast<uint32_t>(wide), static_cast<uint32_t>(wide >> 32)};
}

PhiloxBlock RandomStream::block(uint64_t index) const {
  return philox(
      {static_cast<uint32_t>(index), static_cast<uint32_t>(index >> 32),
       static_cast<uint32_t>(stream), static_cast<uint32_t>(stream >> 32)},
      key);
}

uint64_t RandomStream::bits(uint64_t index) const {
  PhiloxBlock words = block(index);
  return words[0] | static_cast<uint64_t>(words[1]) << 32;
}

int64_t RandomStream::below(uint64_t index, int64_t bound) const {
  return static_cast<int64_t>(
      static_cast<unsigned __int128>(bits(index)) * bound >> 64);
}

static double unit(uint32_t word) { return (word + 0.5) * 0x1p-32; }

/// Writes elements [begin, end), a block of four at a time.
template <typename MakeFour>
static void fill(int64_t begin, int64_t end, float *out, MakeFour makeFour) {
  for (int64_t first = begin & ~int64_t(3); first < end; first += 4) {
    std::array<double, 4> values = makeFour(static_cast<uint64_t>(first / 4));
    int64_t from = std::max(first, begin), to = std::min(first + 4, end);
    for (int64_t i = from; i < to; ++i)
      out[i - begin] = static_cast<float>(values[i - first]);
  }
}

void RandomStream::normal(int64_t begin, int64_t end, double mean,
                          double deviation, float *out) const {
  fill(begin, end, out, [&](uint64_t index) {
    PhiloxBlock w = block(index);
    std::array<double, 4> values;
    for (int pair = 0; pair < 4; pair += 2) {
      double radius = deviation * std::sqrt(-2.0 * std::log(unit(w[pair])));
      double angle = 2.0 * std::numbers::pi * unit(w[pair + 1]);
      double sine, cosine;
      sincos(angle, &sine, &cosine);
      values[pair] = mean + radius * cosine;
      values[pair + 1] = mean + radius * sine;
    }
    return values;
  });
}

void RandomStream::uniform(int64_t begin, int64_t end, double low, double high,
                           float *out) const {
  fill(begin, end, out, [&](uint64_t index) {
    PhiloxBlock w = block(index);
    std::array<double, 4> values;
    for (int i = 0; i < 4; ++i)
      values[i] = low + (high - low) * unit(w[i]);
    return values;
  });
}

} // namespace rota
