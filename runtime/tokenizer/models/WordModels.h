// SPDX-License-Identifier: Apache-2.0
//
// Models that look words up: WordPiece (the longest beginning first, as in
// BERT), and WordLevel (whole words).
#ifndef ROTA_RUNTIME_TOKENIZER_WORDMODELS_H
#define ROTA_RUNTIME_TOKENIZER_WORDMODELS_H

#include "runtime/tokenizer/models/TokenModel.h"

namespace rota {

class WordPieceModel : public TokenModel {
public:
  explicit WordPieceModel(const JsonNode &node);

  void encode(std::string_view piece,
              std::vector<int32_t> &tokens) const override;

private:
  bool cut(std::string_view piece, std::vector<int32_t> &tokens) const;

  std::string prefix; // of parts after the first
  std::string unknown;
  int64_t mostCharacters; // longer words are unknown
  size_t mostBytes = 0;   // of a token
};

class WordLevelModel : public TokenModel {
public:
  explicit WordLevelModel(const JsonNode &node);

  void encode(std::string_view piece,
              std::vector<int32_t> &tokens) const override;

private:
  std::string unknown;
};

} // namespace rota

#endif // ROTA_RUNTIME_TOKENIZER_WORDMODELS_H
