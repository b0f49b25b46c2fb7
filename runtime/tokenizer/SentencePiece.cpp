// SPDX-License-Identifier: Apache-2.0
//
// tokenizer.model, by libsentencepiece.
#include "runtime/Error.h"
#include "runtime/tokenizer/SentencePieceFile.h"
#include "runtime/tokenizer/Tokenizer.h"

#include <fmt/format.h>
#include <sentencepiece_processor.h>

namespace rota {

namespace {

using sentencepiece::SentencePieceProcessor;

class SentencePieceTokenizer : public Tokenizer {
public:
  SentencePieceTokenizer(std::string_view bytes, const std::string &name);

  std::unique_ptr<Encoder> makeEncoder() const override;
  std::string decode(std::span<const int32_t> tokens,
                     bool skipSpecial) const override;
  std::optional<int32_t> find(std::string_view token) const override;

  SentencePieceProcessor whole;
  /// Without the space that the model puts before a text.
  SentencePieceProcessor inside;
};

class SentencePieceEncoder : public Encoder {
public:
  explicit SentencePieceEncoder(const SentencePieceTokenizer &tokenizer)
      : tokenizer(tokenizer) {}

  void encode(std::string_view text, TextPlace place,
              std::vector<int32_t> &tokens) override {
    const SentencePieceProcessor &processor =
        place == TextPlace::Start ? tokenizer.whole : tokenizer.inside;
    auto status = processor.Encode({text.data(), text.size()}, &found);
    if (!status.ok())
      throw InputError(
          fmt::format("'{}': {}", tokenizer.path, status.ToString()));
    tokens.insert(tokens.end(), found.begin(), found.end());
  }

private:
  const SentencePieceTokenizer &tokenizer;
  std::vector<int> found;
};

void load(SentencePieceProcessor &processor, std::string_view bytes,
          const std::string &name) {
  auto status = processor.LoadFromSerializedProto({bytes.data(), bytes.size()});
  if (!status.ok())
    throw InputError(fmt::format("'{}': expected a model of sentencepiece: {}",
                                 name, status.ToString()));
}

SentencePieceTokenizer::SentencePieceTokenizer(std::string_view bytes,
                                               const std::string &name) {
  // ModelProto.normalizer_spec.add_dummy_prefix = false: a message that comes
  // again in a protobuf is merged.
  constexpr std::string_view kNoPrefix("\x1A\x02\x18\x00", 4);
  checkCharacterTables(bytes, fmt::format("'{}'", name));
  load(whole, bytes, name);
  load(inside, std::string(bytes).append(kNoPrefix), name);
  vocabulary = whole.GetPieceSize();
}

std::unique_ptr<Encoder> SentencePieceTokenizer::makeEncoder() const {
  return std::make_unique<SentencePieceEncoder>(*this);
}

std::string SentencePieceTokenizer::decode(std::span<const int32_t> tokens,
                                           bool skipSpecial) const {
  requireKnown(tokens);
  std::string text;
  // Control tokens have no text.
  auto status =
      whole.Decode(std::vector<int>(tokens.begin(), tokens.end()), &text);
  if (!status.ok())
    throw InputError(fmt::format("'{}': {}", path, status.ToString()));
  return text;
}

std::optional<int32_t>
SentencePieceTokenizer::find(std::string_view token) const {
  int found = whole.PieceToId({token.data(), token.size()});
  if (found < 0 || whole.IdToPiece(found) != token)
    return std::nullopt;
  return found;
}

} // namespace

std::unique_ptr<Tokenizer> readSentencePiece(std::string_view bytes,
                                             const std::string &name) {
  return std::make_unique<SentencePieceTokenizer>(bytes, name);
}

} // namespace rota
