// SPDX-License-Identifier: Apache-2.0
//
// Kernels that the runtime launches for transfers: sums, rounding, copies.
// Elements are read in chunks of 16 bytes where addresses, lengths and strides
// of all rows allow it, then one by one.
#include "lowering/gpu/services/Threads.h"

namespace rota::services {
namespace {

/// `kCount` numbers of a type, at an address that is a multiple of at most 16.
template <typename T, int kCount> struct Numbers {
  static constexpr int kBytes =
      kCount * sizeof(T) < 16 ? kCount * sizeof(T) : 16;
  typedef T Type __attribute__((ext_vector_type(kCount), aligned(kBytes)));
};
template <typename T, int kCount>
using Vector = typename Numbers<T, kCount>::Type;

// Element types: how numbers lie in memory, and what they are added as.

/// f32, or i32, whose sums wrap around.
template <typename T> struct PlainElement {
  using Stored = T;
  template <int kCount> using Wide = Vector<T, kCount>;
  template <int kCount> static Wide<kCount> widen(Vector<T, kCount> stored) {
    return stored;
  }
  template <int kCount> static Vector<T, kCount> round(Wide<kCount> values) {
    return values;
  }
};

struct RoundedElement {
  using Stored = uint16_t;
  template <int kCount> using Wide = Vector<float, kCount>;
  /// By shifts: LLVM would make additions of widened bf16 one operation of
  /// bf16, which rounds once where CPUs round to f32 first.
  template <int kCount>
  static Wide<kCount> widen(Vector<uint16_t, kCount> stored) {
    auto words = __builtin_convertvector(stored, Vector<uint32_t, kCount>)
                 << 16;
    return __builtin_bit_cast(Wide<kCount>, words);
  }
  template <int kCount>
  static Vector<uint16_t, kCount> round(Wide<kCount> values) {
    auto rounded = __builtin_convertvector(values, Vector<__bf16, kCount>);
    return __builtin_bit_cast(Vector<uint16_t, kCount>, rounded);
  }
};

template <typename Element, int kCount>
typename Element::template Wide<kCount>
sumOf(typename Element::template Wide<kCount> a,
      typename Element::template Wide<kCount> b) {
  if constexpr (__is_same(Element, PlainElement<int32_t>)) {
    using Bits = Vector<uint32_t, kCount>;
    Bits sum = __builtin_bit_cast(Bits, a) + __builtin_bit_cast(Bits, b);
    return __builtin_bit_cast(decltype(a), sum);
  } else {
    return a + b;
  }
}

/// Where elements are: `length` contiguous ones in each row, `stride` apart.
struct ElementRows {
  int64_t count, length, stride;

  /// One row needs no division.
  int64_t at(int64_t i) const {
    uint64_t row = count <= length ? 0 : uint64_t(i) / uint64_t(length);
    return i + int64_t(row) * (stride - length);
  }
  /// Whether all rows at `data` are whole chunks of `width` elements (a power
  /// of two) and 16 bytes, except for the rest of a single row.
  bool hasChunks(const ROTA_GLOBAL void *data, int64_t width) const {
    bool isWhole = count <= length || ((length | stride) & (width - 1)) == 0;
    return (uint64_t(data) & 15) == 0 && isWhole;
  }
};

template <typename T, int kCount>
Vector<T, kCount> load(const ROTA_GLOBAL void *data, int64_t element) {
  auto *first = static_cast<const ROTA_GLOBAL T *>(data) + element;
  return *reinterpret_cast<const ROTA_GLOBAL Vector<T, kCount> *>(first);
}
template <typename T, int kCount>
void store(Vector<T, kCount> values, ROTA_GLOBAL void *data, int64_t element) {
  auto *first = static_cast<ROTA_GLOBAL T *>(data) + element;
  *reinterpret_cast<ROTA_GLOBAL Vector<T, kCount> *>(first) = values;
}

/// Calls body.run<kCount>(i) for the first element i of each chunk of `kWidth`
/// elements, as far as there are, then of single ones.
template <int kWidth, typename Body>
void forEachChunk(bool hasChunks, int64_t count, const Body &body) {
  int64_t chunks = hasChunks ? int64_t(uint64_t(count) / kWidth) : 0;
  for (int64_t c = threadOfGrid(); c < chunks; c += threadsOfGrid())
    body.template run<kWidth>(c * kWidth);
  for (int64_t i = chunks * kWidth + threadOfGrid(); i < count;
       i += threadsOfGrid())
    body.template run<1>(i);
}

/// The elements of 16 bytes.
template <typename T> constexpr int kWidth = 16 / sizeof(T);

template <typename Element> struct Addition {
  using T = typename Element::Stored;
  ROTA_GLOBAL void *sum;
  const ROTA_GLOBAL void *terms;

  template <int kCount> void run(int64_t i) const {
    auto a = Element::template widen<kCount>(load<T, kCount>(sum, i));
    auto b = Element::template widen<kCount>(load<T, kCount>(terms, i));
    auto result = sumOf<Element, kCount>(a, b);
    store<T, kCount>(Element::template round<kCount>(result), sum, i);
  }
};

template <typename Element>
void add(ROTA_GLOBAL void *sum, const ROTA_GLOBAL void *terms, int64_t count) {
  constexpr int width = kWidth<typename Element::Stored>;
  ElementRows one{count, count, count};
  forEachChunk<width>(one.hasChunks(sum, width) && one.hasChunks(terms, width),
                      count, Addition<Element>{sum, terms});
}

struct Rounding {
  ROTA_GLOBAL void *rounded;
  const ROTA_GLOBAL void *values;

  template <int kCount> void run(int64_t i) const {
    auto wide = load<float, kCount>(values, i);
    store<uint16_t, kCount>(RoundedElement::round<kCount>(wide), rounded, i);
  }
};

/// Term `t` of a sum, in global memory.
struct GlobalTerm {
  const ROTA_GLOBAL void *data;
  int64_t stride;
};
GlobalTerm termOf(const cuda::Term *terms, int64_t t) {
  return {(const ROTA_GLOBAL void *)terms[t].data, terms[t].stride};
}

template <typename Element> struct Combination {
  using T = typename Element::Stored;
  const cuda::Term *terms;
  int64_t termCount, termLength;
  ROTA_GLOBAL void *out;
  ElementRows outRows;
  int32_t mode;

  template <int kCount> auto read(int64_t t, int64_t i) const {
    GlobalTerm term = termOf(terms, t);
    ElementRows rows{outRows.count, termLength, term.stride};
    return Element::template widen<kCount>(
        load<T, kCount>(term.data, rows.at(i)));
  }
  template <int kCount> void run(int64_t i) const {
    auto value = read<kCount>(0, i);
// Loops over terms need their registers elsewhere.
#pragma nounroll
    for (int64_t t = 1; t < termCount; ++t) {
      auto next = read<kCount>(t, i);
      // A NaN is larger than every number.
      auto isLarger = (next > value) | (next != next);
      value = mode == cuda::kMaximum ? (isLarger ? next : value)
                                     : sumOf<Element, kCount>(value, next);
    }
    int64_t place = outRows.at(i);
    if (mode == cuda::kAccumulate)
      value = sumOf<Element, kCount>(
          value, Element::template widen<kCount>(load<T, kCount>(out, place)));
    store<T, kCount>(Element::template round<kCount>(value), out, place);
  }
};

template <typename Element>
void combine(const cuda::Term *terms, int64_t termCount, ROTA_GLOBAL void *out,
             int64_t count, int64_t termLength, int64_t outLength,
             int64_t outStride, int32_t mode) {
  constexpr int width = kWidth<typename Element::Stored>;
  ElementRows outRows{count, outLength, outStride};
  bool hasChunks = outRows.hasChunks(out, width);
#pragma nounroll
  for (int64_t t = 0; t < termCount; ++t) {
    GlobalTerm term = termOf(terms, t);
    ElementRows rows{count, termLength, term.stride};
    hasChunks = hasChunks && rows.hasChunks(term.data, width);
  }
  forEachChunk<width>(
      hasChunks, count,
      Combination<Element>{terms, termCount, termLength, out, outRows, mode});
}

template <typename T> struct Copy {
  const ROTA_GLOBAL void *source;
  ROTA_GLOBAL void *destination;
  ElementRows from, to;

  template <int kCount> void run(int64_t i) const {
    store<T, kCount>(load<T, kCount>(source, from.at(i)), destination,
                     to.at(i));
  }
};

template <typename T>
void copy(const ROTA_GLOBAL void *source, ROTA_GLOBAL void *destination,
          ElementRows from, ElementRows to) {
  constexpr int width = kWidth<T>;
  forEachChunk<width>(from.hasChunks(source, width) &&
                          to.hasChunks(destination, width),
                      from.count, Copy<T>{source, destination, from, to});
}

} // namespace

ROTA_KERNEL rota_add_f32(ROTA_GLOBAL float *sum, const ROTA_GLOBAL float *terms,
                         int64_t count) {
  add<PlainElement<float>>(sum, terms, count);
}
ROTA_KERNEL rota_add_bf16(ROTA_GLOBAL uint16_t *sum,
                          const ROTA_GLOBAL uint16_t *terms, int64_t count) {
  add<RoundedElement>(sum, terms, count);
}

ROTA_KERNEL rota_round_bf16(ROTA_GLOBAL uint16_t *rounded,
                            const ROTA_GLOBAL float *values, int64_t count) {
  ElementRows one{count, count, count};
  forEachChunk<8>(one.hasChunks(rounded, 8) && one.hasChunks(values, 8), count,
                  Rounding{rounded, values});
}

ROTA_KERNEL rota_combine_f32(const cuda::Term *terms, int64_t termCount,
                             ROTA_GLOBAL float *out, int64_t count,
                             int64_t termLength, int64_t outLength,
                             int64_t outStride, int32_t mode) {
  combine<PlainElement<float>>(terms, termCount, out, count, termLength,
                               outLength, outStride, mode);
}
ROTA_KERNEL rota_combine_bf16(const cuda::Term *terms, int64_t termCount,
                              ROTA_GLOBAL uint16_t *out, int64_t count,
                              int64_t termLength, int64_t outLength,
                              int64_t outStride, int32_t mode) {
  combine<RoundedElement>(terms, termCount, out, count, termLength, outLength,
                          outStride, mode);
}
ROTA_KERNEL rota_combine_i32(const cuda::Term *terms, int64_t termCount,
                             ROTA_GLOBAL int32_t *out, int64_t count,
                             int64_t termLength, int64_t outLength,
                             int64_t outStride, int32_t mode) {
  combine<PlainElement<int32_t>>(terms, termCount, out, count, termLength,
                                 outLength, outStride, mode);
}

ROTA_KERNEL rota_copy_2(const ROTA_GLOBAL uint16_t *source,
                        ROTA_GLOBAL uint16_t *destination, int64_t count,
                        int64_t sourceLength, int64_t sourceStride,
                        int64_t length, int64_t stride) {
  copy<uint16_t>(source, destination, {count, sourceLength, sourceStride},
                 {count, length, stride});
}
ROTA_KERNEL rota_copy_4(const ROTA_GLOBAL uint32_t *source,
                        ROTA_GLOBAL uint32_t *destination, int64_t count,
                        int64_t sourceLength, int64_t sourceStride,
                        int64_t length, int64_t stride) {
  copy<uint32_t>(source, destination, {count, sourceLength, sourceStride},
                 {count, length, stride});
}

} // namespace rota::services
