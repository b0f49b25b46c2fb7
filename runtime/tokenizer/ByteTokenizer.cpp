// SPDX-License-Identifier: Apache-2.0
//
// The tokens of files of bytes: each byte is its own.
#include "runtime/checkpoint/Hash.h"
#include "runtime/tokenizer/Tokenizer.h"
#include "runtime/tokenizer/text/Utf8.h"

namespace rota {

namespace {

class ByteEncoder final : public Encoder {
public:
  void encode(std::string_view text, TextPlace,
              std::vector<int32_t> &tokens) override {
    for (char byte : text)
      tokens.push_back(static_cast<uint8_t>(byte));
  }
};

class ByteTokenizer final : public Tokenizer {
public:
  ByteTokenizer() {
    vocabulary = 256;
    path = kByteTokens;
    hash = hashOf(path);
  }

  std::unique_ptr<Encoder> makeEncoder() const override {
    return std::make_unique<ByteEncoder>();
  }
  std::string decode(std::span<const int32_t> tokens, bool) const override {
    requireKnown(tokens);
    return repairUtf8(std::string(tokens.begin(), tokens.end()));
  }
  std::optional<int32_t> find(std::string_view token) const override {
    return token.size() == 1
               ? std::optional<int32_t>(static_cast<uint8_t>(token[0]))
               : std::nullopt;
  }
};

} // namespace

std::unique_ptr<Tokenizer> makeByteTokenizer() {
  return std::make_unique<ByteTokenizer>();
}

} // namespace rota
