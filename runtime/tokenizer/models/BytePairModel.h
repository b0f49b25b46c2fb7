// SPDX-License-Identifier: Apache-2.0
//
// Byte-pair encoding: the characters of a piece, of which the pair with the
// lowest rank is merged, the first from the left among equals, until no pair
// has a rank. https://arxiv.org/abs/1508.07909
#ifndef ROTA_RUNTIME_TOKENIZER_BYTEPAIRMODEL_H
#define ROTA_RUNTIME_TOKENIZER_BYTEPAIRMODEL_H

#include "runtime/tokenizer/models/TokenModel.h"

namespace rota {

/// The merges by their pair.
class Merges {
public:
  struct Merge {
    int32_t rank, token; // token: the pair as one
  };

  /// Room for that number of merges.
  explicit Merges(size_t count);
  /// The last merge of a pair counts.
  void add(int32_t left, int32_t right, Merge merge);
  /// Null: the pair is not merged.
  const Merge *find(int32_t left, int32_t right) const;

private:
  struct Entry {
    int32_t left = -1, right = -1; // -1: free
    Merge merge;
  };
  size_t slotOf(int32_t left, int32_t right) const;

  std::vector<Entry> entries; // a power of two
};

class BytePairModel : public TokenModel {
public:
  explicit BytePairModel(const JsonNode &node);

  void encode(std::string_view piece,
              std::vector<int32_t> &tokens) const override;
  std::string_view boundary() const override { return mark; }

private:
  struct Symbol {
    int32_t token;
    int32_t previous, next; // -1: none
    bool isGone;
  };
  using Symbols = std::vector<Symbol>;

  void readMerges(const JsonNode &node);
  void findBoundary();
  void addCharacters(std::string_view piece, Symbols &symbols) const;
  bool addBytes(std::string_view text, Symbols &symbols) const;
  void merge(Symbols &symbols) const;

  Merges merges{0};
  std::optional<int32_t> unknown;
  std::string prefix; // of characters after the first
  std::string suffix; // of the last character
  bool fusesUnknown = false, hasByteTokens = false, ignoresMerges = false;
  std::string mark;
};

} // namespace rota

#endif // ROTA_RUNTIME_TOKENIZER_BYTEPAIRMODEL_H
