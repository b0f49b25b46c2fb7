// SPDX-License-Identifier: Apache-2.0
#include "runtime/tokenizer/SentencePieceFile.h"
#include "runtime/Error.h"
#include "runtime/tokenizer/text/CharacterTable.h"

#include <cstdint>
#include <fmt/format.h>
#include <functional>

namespace rota {

namespace {

using UseField = std::function<void(uint64_t number, std::string_view bytes)>;

/// A message of protobuf, from its beginning.
/// https://protobuf.dev/programming-guides/encoding
class ProtobufMessage {
public:
  ProtobufMessage(std::string_view bytes, const std::string &place)
      : rest(bytes), place(place) {}

  /// Gives each field of bytes, in the order of the message.
  void forBytes(const UseField &use) {
    while (!rest.empty()) {
      uint64_t tag = number();
      switch (tag % 8) {
      case 0:
        number();
        break;
      case 1:
        take(8);
        break;
      case 2:
        use(tag / 8, take(number()));
        break;
      case 5:
        take(4);
        break;
      default:
        fail();
      }
    }
  }

private:
  [[noreturn]] void fail() const {
    throw InputError(fmt::format(
        "{}: expected a model of sentencepiece, a protobuf", place));
  }

  std::string_view take(uint64_t size) {
    if (size > rest.size())
      fail();
    std::string_view taken = rest.substr(0, size);
    rest.remove_prefix(size);
    return taken;
  }

  uint64_t number() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      auto byte = static_cast<uint8_t>(take(1)[0]);
      value |= static_cast<uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80)
        return value;
    }
    fail();
  }

  std::string_view rest;
  const std::string &place;
};

} // namespace

void checkCharacterTables(std::string_view file, const std::string &place) {
  // ModelProto.normalizer_spec, ModelProto.denormalizer_spec and
  // NormalizerSpec.precompiled_charsmap of sentencepiece_model.proto.
  constexpr uint64_t kNormalizer = 3, kDenormalizer = 5, kTable = 2;
  ProtobufMessage(file, place)
      .forBytes([&](uint64_t part, std::string_view bytes) {
        if (part != kNormalizer && part != kDenormalizer)
          return;
        ProtobufMessage(bytes, place)
            .forBytes([&](uint64_t field, std::string_view table) {
              if (field == kTable && !table.empty() &&
                  !CharacterTable(table, place).isClosed())
                throw InputError(
                    fmt::format("{}: expected a table of characters "
                                "(precompiled_charsmap) whose "
                                "trie ends inside of it",
                                place));
            });
      });
}

} // namespace rota
