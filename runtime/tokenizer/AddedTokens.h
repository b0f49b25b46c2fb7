// SPDX-License-Identifier: Apache-2.0
//
// Tokens beside those of the model (`added_tokens`), which are found in a text
// before the model sees it.
#ifndef ROTA_RUNTIME_TOKENIZER_ADDEDTOKENS_H
#define ROTA_RUNTIME_TOKENIZER_ADDEDTOKENS_H

#include "runtime/tokenizer/models/ByteTrie.h"
#include "runtime/tokenizer/models/TokenModel.h"
#include "runtime/tokenizer/text/JsonNode.h"

#include <map>
#include <string>
#include <vector>

namespace rota {

struct AddedToken {
  std::string content;
  bool singleWord = false;                      // not beside a letter
  bool stripsLeft = false, stripsRight = false; // takes spaces beside it
  bool isNormalized = false; // its normal form is sought in the normalized text
  bool isSpecial = false;
  std::string normal; // content, or its normal form
};

/// A part of a text: an added token, or text in between (token kNoToken).
struct AddedPart {
  std::string_view text;
  int32_t token;
};
inline constexpr int32_t kNoToken = -1;

class AddedTokens {
public:
  /// Tokens get the numbers of the model's tokens of that text, or those after
  /// the model's; `id` in the file is not read. `normalize` makes normal forms.
  void read(const JsonNode &node, const TokenModel &model,
            const std::function<std::string(std::string)> &normalize);

  /// Calls `use` with each part of the text, from left to right. `normalized`:
  /// seeks the tokens that are sought in normalized texts, else the others.
  template <typename Use>
  void split(std::string_view text, bool normalized, Use use) const {
    size_t begin = 0;
    for (const Found &found : find(text, normalized)) {
      if (begin < found.begin)
        use(AddedPart{text.substr(begin, found.begin - begin), kNoToken});
      use(AddedPart{text.substr(found.begin, found.end - found.begin),
                    found.token});
      begin = found.end;
    }
    if (begin < text.size())
      use(AddedPart{text.substr(begin), kNoToken});
  }

  const AddedToken *find(int32_t token) const;
  std::optional<int32_t> find(std::string_view content) const;
  int32_t largest() const {
    return byToken.empty() ? -1 : byToken.rbegin()->first;
  }

private:
  struct Found {
    size_t begin, end;
    int32_t token;
  };
  struct Set {
    ByteTrie trie;
    bool begins[256] = {}; // bytes with which a token begins
    bool isEmpty = true;
  };
  std::vector<Found> find(std::string_view text, bool normalized) const;
  void add(Set &set, const std::string &pattern, int32_t token);

  std::map<int32_t, AddedToken> byToken;
  std::map<std::string, int32_t, std::less<>> byContent;
  Set sets[2]; // in texts as they are; in normalized texts
};

} // namespace rota

#endif // ROTA_RUNTIME_TOKENIZER_ADDEDTOKENS_H
