// SPDX-License-Identifier: Apache-2.0
#include "runtime/tokenizer/models/TokenModel.h"
#include "runtime/tokenizer/models/BytePairModel.h"
#include "runtime/tokenizer/models/UnigramModel.h"
#include "runtime/tokenizer/models/WordModels.h"

#include <algorithm>
#include <fmt/format.h>

namespace rota {

void Vocabulary::read(const JsonNode &node) {
  tokens.reserve(node.size());
  texts.reserve(node.size());
  node.forMembers([&](const std::string &text, const JsonNode &token) {
    add(text, static_cast<int32_t>(token.integer(0, kMostTokens - 1)));
  });
}

void Vocabulary::add(std::string text, int32_t token) {
  last = std::max(last, token);
  texts[token] = text;
  tokens[std::move(text)] = token;
}

std::optional<int32_t> Vocabulary::find(std::string_view text) const {
  auto found = tokens.find(text);
  return found == tokens.end() ? std::nullopt : std::optional(found->second);
}

const std::string *Vocabulary::find(int32_t token) const {
  auto found = texts.find(token);
  return found == texts.end() ? nullptr : &found->second;
}

std::string byteToken(char byte) {
  return fmt::format("<0x{:02X}>", static_cast<uint8_t>(byte));
}

/// The type of a model; old files leave it out.
static std::string typeOf(const JsonNode &node) {
  if (auto type = node.find("type"))
    return type->text();
  return node.find("merges")                     ? "BPE"
         : node.find("max_input_chars_per_word") ? "WordPiece"
         : node.at("vocab").isArray()            ? "Unigram"
                                                 : "WordLevel";
}

std::unique_ptr<TokenModel> readModel(const JsonNode &node) {
  std::string type = typeOf(node);
  if (type == "BPE")
    return std::make_unique<BytePairModel>(node);
  if (type == "Unigram")
    return std::make_unique<UnigramModel>(node);
  if (type == "WordPiece")
    return std::make_unique<WordPieceModel>(node);
  if (type == "WordLevel")
    return std::make_unique<WordLevelModel>(node);
  node.refuse(fmt::format("the model '{}' is not supported", type));
}

} // namespace rota
