// SPDX-License-Identifier: Apache-2.0
#include "runtime/tokenizer/text/CharacterTable.h"
#include "runtime/Error.h"
#include "runtime/tokenizer/text/Utf8.h"

#include <cstring>
#include <fmt/format.h>

namespace rota {

namespace {

/// A unit of the double array: a byte, whether the key ends there, and where
/// the units of the next bytes are. The unit of a value has the highest bit.
/// https://github.com/s-yata/darts-clone/blob/master/include/darts.h
struct Unit {
  uint32_t bits;

  uint32_t label() const { return bits & 0x800000FF; }
  bool endsKey() const { return bits & 0x100; }
  uint32_t offset() const { return (bits >> 10) << ((bits & 0x200) >> 6); }
  uint32_t value() const { return bits & 0x7FFFFFFF; }
};

} // namespace

CharacterTable::CharacterTable(std::string_view bytes,
                               const std::string &place) {
  uint32_t size = 0;
  if (bytes.size() >= sizeof size)
    std::memcpy(&size, bytes.data(), sizeof size);
  if (bytes.size() < sizeof size || size > bytes.size() - sizeof size ||
      size % sizeof(uint32_t) != 0)
    throw InputError(
        fmt::format("{}: expected a table whose first 4 bytes are the size of "
                    "its trie, got {} in {} bytes",
                    place, size, bytes.size()));
  units.resize(size / sizeof(uint32_t));
  if (size > 0)
    std::memcpy(units.data(), bytes.data() + sizeof size, size);
  texts = bytes.substr(sizeof size + size);
  if (validBytes(texts) != texts.size())
    throw InputError(fmt::format("{}: expected replacements in UTF-8", place));
  texts += '\0';
}

const char *CharacterTable::find(std::string_view chunk) const {
  if (units.empty())
    return nullptr;
  uint32_t place = Unit{units[0]}.offset();
  for (char c : chunk) {
    uint32_t byte = static_cast<uint8_t>(c);
    place ^= byte;
    if (byte == 0 || place >= units.size() ||
        Unit{units[place]}.label() != byte)
      return nullptr;
    Unit unit{units[place]};
    place ^= unit.offset();
    if (unit.endsKey())
      return place < units.size() ? textAt(Unit{units[place]}.value())
                                  : nullptr;
  }
  return nullptr;
}

const char *CharacterTable::textAt(uint32_t place) const {
  return place < texts.size() && beginsChar(texts[place]) ? texts.data() + place
                                                          : nullptr;
}

bool CharacterTable::isClosed() const {
  constexpr uint32_t kBytes = 256;
  if (units.empty())
    return false;
  std::vector<bool> seen(units.size());
  std::vector<uint32_t> starts = {Unit{units[0]}.offset()};
  while (!starts.empty()) {
    uint32_t start = starts.back();
    starts.pop_back();
    if ((start | (kBytes - 1)) >= units.size())
      return false;
    for (uint32_t byte = 0; byte < kBytes; ++byte) {
      uint32_t place = start ^ byte;
      Unit unit{units[place]};
      if (unit.label() != byte || seen[place])
        continue;
      seen[place] = true;
      starts.push_back(place ^ unit.offset());
      if (unit.endsKey() && (starts.back() >= units.size() ||
                             !textAt(Unit{units[starts.back()]}.value())))
        return false;
    }
  }
  return true;
}

} // namespace rota
