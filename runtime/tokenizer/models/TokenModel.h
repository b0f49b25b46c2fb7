// SPDX-License-Identifier: Apache-2.0
//
// Models of tokenizer.json: pieces of text to tokens.
#ifndef ROTA_RUNTIME_TOKENIZER_TOKENMODEL_H
#define ROTA_RUNTIME_TOKENIZER_TOKENMODEL_H

#include "runtime/tokenizer/text/JsonNode.h"

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace rota {

/// Tokens are numbered below it.
inline constexpr int64_t kMostTokens = int64_t(1) << 28;

/// Texts and their numbers, both ways.
class Vocabulary {
public:
  /// Reads an object of texts and numbers.
  void read(const JsonNode &node);
  /// The last number of a text counts, and the last text of a number.
  void add(std::string text, int32_t token);

  std::optional<int32_t> find(std::string_view text) const;
  const std::string *find(int32_t token) const;
  size_t size() const { return tokens.size(); }
  int32_t largest() const { return last; }

  template <typename Use> void forAll(Use use) const {
    for (const auto &[text, token] : tokens)
      use(text, token);
  }

private:
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  std::unordered_map<std::string, int32_t, Hash, std::equal_to<>> tokens;
  std::unordered_map<int32_t, std::string> texts;
  int32_t last = -1;
};

/// Any thread may use it.
class TokenModel {
public:
  virtual ~TokenModel() = default;

  /// Appends the tokens of a piece, which is not empty. Throws InputError when
  /// it has none and the model has no token for what is unknown.
  virtual void encode(std::string_view piece,
                      std::vector<int32_t> &tokens) const = 0;

  /// A character before which a piece may be cut where another character than
  /// it stands before it: no token has it there. Empty: there is none.
  virtual std::string_view boundary() const { return {}; }

  /// The number of a text, and the text of a number.
  std::optional<int32_t> find(std::string_view text) const {
    return vocabulary.find(text);
  }
  const std::string *find(int32_t token) const {
    return vocabulary.find(token);
  }
  int64_t size() const { return int64_t(vocabulary.size()); }
  int32_t largest() const { return vocabulary.largest(); }

protected:
  Vocabulary vocabulary;
};

/// Reads the value of `model`. Throws InputError that names what is wrong or
/// unknown.
std::unique_ptr<TokenModel> readModel(const JsonNode &node);

/// "<0x0A>": the token of a byte that has no other.
std::string byteToken(char byte);

} // namespace rota

#endif // ROTA_RUNTIME_TOKENIZER_TOKENMODEL_H
