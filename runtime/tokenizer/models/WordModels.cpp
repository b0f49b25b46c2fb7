// SPDX-License-Identifier: Apache-2.0
#include "runtime/tokenizer/models/WordModels.h"
#include "runtime/Error.h"
#include "runtime/tokenizer/text/Utf8.h"

#include <algorithm>
#include <fmt/format.h>

namespace rota {

static int32_t unknownToken(const Vocabulary &vocabulary,
                            const std::string &unknown,
                            std::string_view piece) {
  if (std::optional<int32_t> token = vocabulary.find(unknown))
    return *token;
  throw InputError(fmt::format("no token for '{}': the tokenizer's model has "
                               "no token '{}'",
                               repairUtf8(piece.substr(0, 40)), unknown));
}

WordPieceModel::WordPieceModel(const JsonNode &node) {
  vocabulary.read(node.at("vocab"));
  unknown = node.at("unk_token").text();
  prefix = node.at("continuing_subword_prefix").text();
  mostCharacters =
      node.at("max_input_chars_per_word").integer(0, int64_t(1) << 31);
  vocabulary.forAll([&](std::string_view text, int32_t) {
    mostBytes = std::max(mostBytes, text.size());
  });
}

bool WordPieceModel::cut(std::string_view piece,
                         std::vector<int32_t> &tokens) const {
  std::string text;
  for (size_t begin = 0; begin < piece.size();) {
    // Longer than the longest token cannot be one.
    size_t end = std::min(piece.size(), begin + mostBytes);
    while (end < piece.size() && !beginsChar(piece[end]))
      --end;
    std::optional<int32_t> token;
    for (; end > begin; --end) {
      if (end < piece.size() && !beginsChar(piece[end]))
        continue;
      text = begin > 0 ? prefix : "";
      text += piece.substr(begin, end - begin);
      token = vocabulary.find(text);
      if (token)
        break;
    }
    if (!token)
      return false;
    tokens.push_back(*token);
    begin = end;
  }
  return true;
}

void WordPieceModel::encode(std::string_view piece,
                            std::vector<int32_t> &tokens) const {
  size_t before = tokens.size();
  if (countChars(piece) <= mostCharacters && cut(piece, tokens))
    return;
  tokens.resize(before);
  tokens.push_back(unknownToken(vocabulary, unknown, piece));
}

WordLevelModel::WordLevelModel(const JsonNode &node) {
  vocabulary.read(node.at("vocab"));
  unknown = node.at("unk_token").text();
}

void WordLevelModel::encode(std::string_view piece,
                            std::vector<int32_t> &tokens) const {
  std::optional<int32_t> token = vocabulary.find(piece);
  tokens.push_back(token ? *token : unknownToken(vocabulary, unknown, piece));
}

} // namespace rota
