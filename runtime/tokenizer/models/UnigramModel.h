// SPDX-License-Identifier: Apache-2.0
//
// The unigram model: the cut of a piece into tokens with the largest sum of
// scores, found from left to right. https://arxiv.org/abs/1804.10959
#ifndef ROTA_RUNTIME_TOKENIZER_UNIGRAMMODEL_H
#define ROTA_RUNTIME_TOKENIZER_UNIGRAMMODEL_H

#include "runtime/tokenizer/models/ByteTrie.h"
#include "runtime/tokenizer/models/TokenModel.h"

namespace rota {

class UnigramModel : public TokenModel {
public:
  explicit UnigramModel(const JsonNode &node);

  void encode(std::string_view piece,
              std::vector<int32_t> &tokens) const override;

private:
  /// The best cut of the bytes before a place: its last token and score.
  struct Best {
    int32_t token = 0;
    int64_t begin = -1; // of the last token; -1: no cut is known
    double score = 0;
  };
  std::vector<Best> findBest(std::string_view piece) const;
  void addPart(std::string_view text, std::vector<int32_t> &tokens) const;
  int32_t requireUnknown(std::string_view text) const;

  ByteTrie trie;
  std::vector<double> scores; // by token
  double leastScore;
  std::optional<int32_t> unknown;
  bool hasByteTokens = false;
};

} // namespace rota

#endif // ROTA_RUNTIME_TOKENIZER_UNIGRAMMODEL_H
