// SPDX-License-Identifier: Apache-2.0
//
// tokenizer.json, as the Python package tokenizers writes and reads it. A text
// is cut at added tokens, normalized, cut at those that are sought in
// normalized texts, cut into pieces, and each piece encoded by the model.
// https://github.com/huggingface/tokenizers
#include "runtime/Error.h"
#include "runtime/files/JsonMistake.h"
#include "runtime/files/Nesting.h"
#include "runtime/tokenizer/AddedTokens.h"
#include "runtime/tokenizer/Decoder.h"
#include "runtime/tokenizer/Normalizer.h"
#include "runtime/tokenizer/PreTokenizer.h"
#include "runtime/tokenizer/Template.h"
#include "runtime/tokenizer/Tokenizer.h"
#include "runtime/tokenizer/models/PieceCache.h"
#include "runtime/tokenizer/models/TokenModel.h"
#include "runtime/tokenizer/text/ByteAlphabet.h"

#include <algorithm>
#include <fmt/format.h>

namespace rota {

namespace {

class HubTokenizer : public Tokenizer {
public:
  explicit HubTokenizer(const JsonNode &node);

  std::unique_ptr<Encoder> makeEncoder() const override;
  std::string decode(std::span<const int32_t> tokens,
                     bool skipSpecial) const override;
  std::optional<int32_t> find(std::string_view token) const override {
    std::optional<int32_t> added = this->added.find(token);
    return added ? added : model->find(token);
  }

  std::unique_ptr<TokenModel> model;
  std::vector<NormalizerStep> normalizer;
  PreTokenizer preTokenizer;
  std::vector<DecoderStep> decoder;
  bool hasDecoder = false;
  AddedTokens added;
};

class HubEncoder : public Encoder {
public:
  explicit HubEncoder(const HubTokenizer &tokenizer)
      : tokenizer(tokenizer), normalizer(tokenizer.normalizer),
        preTokenizer(tokenizer.preTokenizer) {}

  void encode(std::string_view text, TextPlace place,
              std::vector<int32_t> &tokens) override;

private:
  void encodePart(std::string_view text, bool isFirst, bool continues,
                  std::vector<int32_t> &tokens);
  void encodeNormalized(const TextPiece &part, std::vector<int32_t> &tokens);
  void encodePiece(std::string_view piece, std::vector<int32_t> &tokens);

  const HubTokenizer &tokenizer;
  std::vector<NormalizerStep> normalizer;
  PreTokenizer preTokenizer;
  Pieces pieces;
  PieceCache cache;
};

HubTokenizer::HubTokenizer(const JsonNode &node) {
  if (auto version = node.find("version"); version && version->text() != "1.0")
    version->fail("\"1.0\"");
  model = readModel(node.at("model"));
  if (auto value = node.find("normalizer"))
    normalizer = readNormalizer(*value);
  if (auto value = node.find("pre_tokenizer"))
    preTokenizer = readPreTokenizer(*value);
  if (auto value = node.find("decoder")) {
    decoder = readDecoder(*value);
    hasDecoder = true;
  }
  auto normalize = [&](std::string content) {
    NormalizedText text{std::move(content)};
    for (const NormalizerStep &step : normalizer)
      step(text);
    return text.text;
  };
  if (auto value = node.find("added_tokens"))
    added.read(*value, *model, normalize);
  vocabulary = std::max(model->largest(), added.largest()) + 1;
  if (auto value = node.find("post_processor")) {
    Template around = readTemplate(*value);
    before = around.before;
    after = around.after;
    for (const auto &tokens : {before, after})
      for (int32_t token : tokens)
        if (token >= vocabulary)
          value->refuse(fmt::format("expected tokens below {}, got {}",
                                    vocabulary, token));
  }
  if (vocabulary == 0)
    node.at("model").refuse("the vocabulary is empty");
}

std::unique_ptr<Encoder> HubTokenizer::makeEncoder() const {
  return std::make_unique<HubEncoder>(*this);
}

std::string HubTokenizer::decode(std::span<const int32_t> tokens,
                                 bool skipSpecial) const {
  requireKnown(tokens);
  std::vector<std::string> texts;
  for (int32_t token : tokens) {
    const AddedToken *special = added.find(token);
    const std::string *text = special ? &special->normal : model->find(token);
    // A number may be no token.
    if (text && !(skipSpecial && special && special->isSpecial))
      texts.push_back(*text);
  }
  std::string all;
  if (!hasDecoder) {
    for (const std::string &text : texts)
      all += (&text == &texts[0] ? "" : " ") + text;
    return all;
  }
  for (DecoderStep step : decoder) // a copy, for this thread
    step(texts);
  for (const std::string &text : texts)
    all += text;
  return all;
}

void HubEncoder::encode(std::string_view text, TextPlace place,
                        std::vector<int32_t> &tokens) {
  const char *begin = text.data();
  bool isInside = place == TextPlace::Inside;
  tokenizer.added.split(text, /*normalized=*/false, [&](AddedPart part) {
    bool isFirst = part.text.data() == begin;
    if (part.token != kNoToken)
      tokens.push_back(part.token);
    else
      encodePart(part.text, isFirst && !isInside, isFirst && isInside, tokens);
  });
}

void HubEncoder::encodePart(std::string_view text, bool isFirst, bool continues,
                            std::vector<int32_t> &tokens) {
  if (normalizer.empty())
    return encodeNormalized({text, isFirst, continues}, tokens);
  NormalizedText normal{std::string(text), isFirst, continues};
  for (NormalizerStep &step : normalizer)
    step(normal);
  encodeNormalized({normal.text, normal.isFirst, continues}, tokens);
}

void HubEncoder::encodeNormalized(const TextPiece &whole,
                                  std::vector<int32_t> &tokens) {
  const char *begin = whole.text.data();
  tokenizer.added.split(whole.text, /*normalized=*/true, [&](AddedPart part) {
    if (part.token != kNoToken)
      return tokens.push_back(part.token);
    bool isStart = part.text.data() == begin;
    pieces.list.assign(
        1, {part.text, isStart && whole.isFirst, isStart && whole.continues});
    pieces.owned.clear();
    for (PreTokenizerStep &step : preTokenizer.steps)
      step(pieces);
    for (const TextPiece &piece : pieces.list)
      encodePiece(piece.text, tokens);
  });
}

void HubEncoder::encodePiece(std::string_view piece,
                             std::vector<int32_t> &tokens) {
  std::string_view mark = tokenizer.model->boundary();
  while (!piece.empty()) {
    // Cut before a mark that follows another character.
    size_t end = piece.size();
    if (!mark.empty()) {
      size_t at = 0;
      while (piece.substr(at).starts_with(mark))
        at += mark.size();
      end = std::min(end, piece.find(mark, at));
    }
    std::string_view part = piece.substr(0, end);
    piece.remove_prefix(end);
    if (cache.find(part, tokens))
      continue;
    size_t before = tokens.size();
    if (preTokenizer.endsWithBytes)
      tokenizer.model->encode(toAlphabet(part), tokens);
    else
      tokenizer.model->encode(part, tokens);
    cache.add(part, std::span(tokens).subspan(before));
  }
}

} // namespace

std::unique_ptr<Tokenizer> readHubTokenizer(std::string_view bytes,
                                            const std::string &name) {
  if (std::string mistake = nestingMistake(bytes); !mistake.empty())
    throw InputError(fmt::format("'{}': {}", name, mistake));
  nlohmann::json file;
  try {
    file = nlohmann::json::parse(bytes);
  } catch (const nlohmann::json::exception &error) {
    throw InputError(fmt::format("'{}': {}", name, jsonMistake(error.what())));
  }
  return std::make_unique<HubTokenizer>(JsonNode(file, "'" + name + "'"));
}

} // namespace rota
