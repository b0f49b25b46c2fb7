// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/MegatronIndex.h"
#include "runtime/Error.h"

#include <algorithm>
#include <fmt/format.h>
#include <string_view>
#include <vector>

namespace rota {

static constexpr std::string_view kMagic("MMIDIDX\0\0", 9);
static constexpr int64_t kHeaderBytes = 34;
// A larger index is not read as a whole.
static constexpr int64_t kCheckedBytes = int64_t(64) << 20;

template <typename T> static T numberAt(const DataFile &file, int64_t offset) {
  T value;
  file.read(offset, sizeof value, reinterpret_cast<char *>(&value));
  return value;
}

std::string megatronIndexPath(const std::string &path) {
  return path.ends_with(".bin") ? path.substr(0, path.size() - 4) + ".idx" : "";
}

bool isMegatronIndex(const DataFile &file) {
  char start[kMagic.size()];
  if (file.bytes() < int64_t(sizeof start))
    return false;
  file.read(0, sizeof start, start);
  return std::string_view(start, sizeof start) == kMagic;
}

static TokenType typeOf(const DataFile &index) {
  auto code = numberAt<uint8_t>(index, 17);
  switch (code) {
  case 1:
    return TokenType::Bytes;
  case 4:
    return TokenType::Int32;
  case 5:
    return TokenType::Int64;
  case 8:
    return TokenType::Uint16;
  }
  throw InputError(fmt::format(
      "'{}': expected a type code of 1 (uint8), 4 (int32), 5 (int64) or 8 "
      "(uint16), got {}",
      index.path(), code));
}

namespace {

/// The part of an index after its header.
struct Sequences {
  const DataFile &index, &tokens;
  int64_t count, unit; // bytes of a token

  /// Checks sequences [begin, end), of which the first should be at `offset`.
  /// Returns the offset after the last one.
  int64_t check(int64_t begin, int64_t end, int64_t offset) const {
    auto size = static_cast<size_t>(end - begin);
    std::vector<int32_t> lengths(size);
    std::vector<int64_t> offsets(size);
    index.read(kHeaderBytes + 4 * begin, 4 * (end - begin),
               reinterpret_cast<char *>(lengths.data()));
    index.read(kHeaderBytes + 4 * count + 8 * begin, 8 * (end - begin),
               reinterpret_cast<char *>(offsets.data()));
    for (size_t i = 0; i < size; ++i) {
      if (lengths[i] < 0 || offsets[i] != offset)
        throw InputError(fmt::format(
            "'{}': sequence {}: expected at least 0 tokens at offset {} of "
            "'{}', got {} tokens at offset {}",
            index.path(), begin + int64_t(i), offset, tokens.path(), lengths[i],
            offsets[i]));
      offset += lengths[i] * unit;
    }
    return offset;
  }

  int64_t checkAll() const {
    constexpr int64_t kBlock = 1 << 16;
    int64_t offset = 0;
    for (int64_t begin = 0; begin < count; begin += kBlock)
      offset = check(begin, std::min(count, begin + kBlock), offset);
    return offset;
  }

  int64_t checkEnds() const {
    check(0, 1, 0);
    auto last =
        numberAt<int64_t>(index, kHeaderBytes + 4 * count + 8 * (count - 1));
    return check(count - 1, count, last);
  }
};

} // namespace

TokenLayout readMegatronIndex(const DataFile &index, const DataFile &tokens) {
  if (!isMegatronIndex(index))
    throw InputError(fmt::format(
        "'{}': expected the index of the Megatron data set '{}', which begins "
        "with MMIDIDX; rename the file if it belongs to something else",
        index.path(), tokens.path()));
  if (index.bytes() < kHeaderBytes)
    throw InputError(fmt::format("'{}': expected an index of at least {} "
                                 "bytes, got {}",
                                 index.path(), kHeaderBytes, index.bytes()));
  if (auto version = numberAt<uint64_t>(index, 9); version != 1)
    throw InputError(
        fmt::format("'{}': expected version 1, got {}", index.path(), version));
  TokenType type = typeOf(index);
  auto count = numberAt<uint64_t>(index, 18);
  auto documents = numberAt<uint64_t>(index, 26);
  auto room = static_cast<uint64_t>(index.bytes() - kHeaderBytes);
  // Bounds first: the products below cannot overflow then.
  bool fits = count >= 1 && documents >= 1 && count <= room / 12 &&
              documents <= room / 8;
  uint64_t needed = 12 * count + 8 * documents;
  if (!fits || (room != needed && room != needed + count))
    throw InputError(fmt::format(
        "'{}': expected 34 + 12 x sequences + 8 x document boundaries bytes, "
        "got {} bytes with {} sequences and {} document boundaries",
        index.path(), index.bytes(), count, documents));
  auto sequences = static_cast<int64_t>(count);
  int64_t last =
      kHeaderBytes + 12 * sequences + 8 * (static_cast<int64_t>(documents) - 1);
  if (auto end = numberAt<int64_t>(index, last); end != sequences)
    throw InputError(fmt::format("'{}': expected the last document to end "
                                 "with sequence {}, got {}",
                                 index.path(), sequences, end));
  Sequences all{index, tokens, sequences, tokenBytes(type)};
  int64_t end =
      index.bytes() <= kCheckedBytes ? all.checkAll() : all.checkEnds();
  if (end != tokens.bytes())
    throw InputError(fmt::format("'{}': expected {} bytes, as '{}' says, got "
                                 "{}",
                                 tokens.path(), end, index.path(),
                                 tokens.bytes()));
  return {type, 0, end / tokenBytes(type)};
}

} // namespace rota
