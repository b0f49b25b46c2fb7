// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/NumpyHeader.h"
#include "runtime/Error.h"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <string_view>

namespace rota {

static constexpr std::string_view kMagic = "\x93NUMPY";
// numpy's own are of 54 to 118 bytes for one dimension.
static constexpr uint32_t kMostHeaderBytes = 1 << 16;

namespace {

struct Descriptor {
  std::string_view name;
  TokenType type;
};
constexpr Descriptor kDescriptors[] = {{"|u1", TokenType::Bytes},
                                       {"<u2", TokenType::Uint16},
                                       {"<u4", TokenType::Uint32},
                                       {"<i4", TokenType::Int32},
                                       {"<i8", TokenType::Int64}};

/// The text of the dictionary, and the offset of the array after it.
struct Header {
  std::string text;
  int64_t end;
};

Header readText(const DataFile &file) {
  auto cutOff = [&](int64_t needed) {
    return InputError(fmt::format(
        "'{}': expected a numpy header of {} bytes, got a file of {}",
        file.path(), needed, file.bytes()));
  };
  if (file.bytes() < 12)
    throw cutOff(12);
  uint8_t start[12];
  file.read(0, sizeof start, reinterpret_cast<char *>(start));
  int major = start[6];
  if (major < 1 || major > 3)
    throw InputError(fmt::format("'{}': expected version 1 to 3 of a numpy "
                                 "file, got {}.{}",
                                 file.path(), major, start[7]));
  int64_t begin = major == 1 ? 10 : 12;
  uint32_t length = start[8] | start[9] << 8;
  if (major > 1)
    length |= static_cast<uint32_t>(start[10]) << 16 |
              static_cast<uint32_t>(start[11]) << 24;
  if (begin + length > file.bytes())
    throw cutOff(begin + length);
  if (length > kMostHeaderBytes)
    throw InputError(fmt::format("'{}': expected a numpy header of at most {} "
                                 "bytes, got {}",
                                 file.path(), kMostHeaderBytes, length));
  Header header{std::string(length, ' '), begin + length};
  file.read(begin, length, header.text.data());
  return header;
}

/// The text after the key, from its first character; empty: no such key.
std::string_view valueOf(std::string_view text, std::string_view key) {
  size_t at = text.find(key);
  if (at == text.npos)
    return {};
  at = text.find_first_not_of(" ", at + key.size());
  if (at == text.npos || text[at] != ':')
    return {};
  at = text.find_first_not_of(" ", at + 1);
  return at == text.npos ? std::string_view() : text.substr(at);
}

/// The N of "(N,)"; -1 for anything else.
int64_t lengthOf(std::string_view shape) {
  int64_t length = -1;
  if (!shape.starts_with("("))
    return -1;
  auto [end, error] =
      std::from_chars(shape.data() + 1, shape.data() + shape.size(), length);
  std::string_view rest(end, shape.data() + shape.size() - end);
  return error == std::errc() && rest.starts_with(",)") ? length : -1;
}

} // namespace

std::optional<TokenLayout> readNumpyHeader(const DataFile &file) {
  char start[kMagic.size()];
  if (file.bytes() < int64_t(sizeof start))
    return std::nullopt;
  file.read(0, sizeof start, start);
  if (std::string_view(start, sizeof start) != kMagic)
    return std::nullopt;
  Header header = readText(file);
  std::string_view type = valueOf(header.text, "'descr'");
  std::string_view shape = valueOf(header.text, "'shape'");
  int64_t length = lengthOf(shape);
  for (const Descriptor &known : kDescriptors)
    if (length >= 0 && type.starts_with("'" + std::string(known.name) + "'")) {
      TokenLayout layout{known.type, header.end, length};
      requireSize(file, "numpy", layout);
      return layout;
    }
  std::string shown =
      header.text.substr(0, std::min<size_t>(120, header.text.find('\n')));
  std::replace_if(
      shown.begin(), shown.end(), [](char c) { return c < ' ' || c > '~'; },
      '?');
  throw InputError(fmt::format(
      "'{}': expected an array of one dimension of type |u1, <u2, <u4, <i4 or "
      "<i8, got the header {}",
      file.path(), shown));
}

} // namespace rota
