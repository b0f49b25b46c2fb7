// SPDX-License-Identifier: Apache-2.0
//
// A tokenizer out of a file: text to tokens and back. Which files there are,
// and what each can ask for, is in README.md.
#ifndef ROTA_RUNTIME_TOKENIZER_TOKENIZER_H
#define ROTA_RUNTIME_TOKENIZER_TOKENIZER_H

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rota {

/// Where a text is in its document.
enum class TextPlace {
  Start,  // its beginning
  Inside, // what follows a part that was encoded before
};

/// Encodes for one thread.
class Encoder {
public:
  virtual ~Encoder() = default;

  /// Appends the tokens of valid UTF-8, without those of the template. Throws
  /// InputError where the tokenizer has no token for it.
  virtual void encode(std::string_view text, TextPlace place,
                      std::vector<int32_t> &tokens) = 0;
};

/// Any thread may use it.
class Tokenizer {
public:
  virtual ~Tokenizer() = default;

  virtual std::unique_ptr<Encoder> makeEncoder() const = 0;

  /// The text of tokens. Throws InputError for one outside of the vocabulary.
  /// `skipSpecial`: special tokens have no text.
  virtual std::string decode(std::span<const int32_t> tokens,
                             bool skipSpecial) const = 0;

  /// The number of a token.
  virtual std::optional<int32_t> find(std::string_view token) const = 0;

  /// Tokens before and after those of a document, as the file's template says.
  std::vector<int32_t> before, after;
  /// All tokens are below it.
  int64_t vocabulary = 0;
  std::string path;  // of the file
  uint64_t hash = 0; // of the file's bytes

protected:
  /// Throws InputError unless every token is in the vocabulary.
  void requireKnown(std::span<const int32_t> tokens) const;
};

/// The path of the tokenizer of bytes, unless there is such a file.
inline constexpr const char *kByteTokens = "bytes";

/// Opens a tokenizer.json or a tokenizer.model, or the one in a folder, in
/// which tokenizer.json comes first; or that of bytes, where `path` is
/// kByteTokens. Throws InputError that names file, place and what is wrong or
/// not supported.
std::unique_ptr<Tokenizer> openTokenizer(const std::string &path);

/// The path of tokenizer.json or else tokenizer.model in a folder; nothing
/// where there is neither.
std::optional<std::string> findTokenizer(const std::string &folder);

/// Bytes as tokens, for models of bytes: a vocabulary of 256.
std::unique_ptr<Tokenizer> makeByteTokenizer();

/// The two kinds, from the bytes of a file. `name` is for messages.
std::unique_ptr<Tokenizer> readHubTokenizer(std::string_view bytes,
                                            const std::string &name);
std::unique_ptr<Tokenizer> readSentencePiece(std::string_view bytes,
                                             const std::string &name);

} // namespace rota

#endif // ROTA_RUNTIME_TOKENIZER_TOKENIZER_H
