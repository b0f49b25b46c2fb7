// SPDX-License-Identifier: Apache-2.0
//
// Ordered sums and maxima: plain loops over tiles that stay in the L1 cache, so
// that each term is read from memory once and the result is written once.
#include "runtime/collective/Blocks.h"
#include "runtime/program/Convert.h"

namespace rota {

namespace {

constexpr int64_t kTile = 2048; // elements

struct BFloat16 {
  uint16_t bits;
};

float load(float value) { return value; }
int32_t load(int32_t value) { return value; }
float load(BFloat16 value) { return fromBf16(value.bits); }

void store(float &place, float value) { place = value; }
void store(int32_t &place, int32_t value) { place = value; }
void store(BFloat16 &place, float value) { place.bits = toBf16(value); }

float sum(float a, float b) { return a + b; }
int32_t sum(int32_t a, int32_t b) {
  return static_cast<int32_t>(uint32_t(a) + uint32_t(b));
}

template <typename T> T larger(T a, T b) { return b > a || b != b ? b : a; }

template <typename T, bool kMaximum>
void combineTiles(bool accumulate, const std::vector<const void *> &terms,
                  T *destination, int64_t count) {
  decltype(load(T())) tile[kTile];
  for (int64_t begin = 0; begin < count; begin += kTile) {
    int64_t n = std::min(kTile, count - begin);
    const T *first = static_cast<const T *>(terms[0]) + begin;
    for (int64_t i = 0; i < n; ++i)
      tile[i] = load(first[i]);
    for (size_t t = 1; t < terms.size(); ++t) {
      const T *term = static_cast<const T *>(terms[t]) + begin;
      for (int64_t i = 0; i < n; ++i)
        tile[i] = kMaximum ? larger(tile[i], load(term[i]))
                           : sum(tile[i], load(term[i]));
    }
    T *out = destination + begin;
    if (accumulate)
      for (int64_t i = 0; i < n; ++i)
        store(out[i], sum(load(out[i]), tile[i]));
    else
      for (int64_t i = 0; i < n; ++i)
        store(out[i], tile[i]);
  }
}

template <typename T>
void combineAs(const Collective &collective,
               const std::vector<const void *> &terms, void *destination,
               int64_t count) {
  bool accumulate = collective.kind == Collective::Kind::ReduceScatter &&
                    collective.accumulate;
  T *out = static_cast<T *>(destination);
  if (collective.maximum)
    combineTiles<T, true>(accumulate, terms, out, count);
  else
    combineTiles<T, false>(accumulate, terms, out, count);
}

} // namespace

void combine(const Collective &collective,
             const std::vector<const void *> &terms, void *destination,
             int64_t count) {
  switch (collective.type) {
  case ElementType::F32:
    return combineAs<float>(collective, terms, destination, count);
  case ElementType::BF16:
    return combineAs<BFloat16>(collective, terms, destination, count);
  case ElementType::I32:
    return combineAs<int32_t>(collective, terms, destination, count);
  }
}

} // namespace rota
