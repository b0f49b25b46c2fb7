// SPDX-License-Identifier: Apache-2.0
//
// Token files, mapped into memory: text as bytes, or arrays of uint16 or uint32
// in little endian. Several files are one sequence of tokens.
#ifndef ROTA_RUNTIME_DATA_TOKENS_H
#define ROTA_RUNTIME_DATA_TOKENS_H

#include <cstdint>
#include <string>
#include <vector>

namespace rota {

enum class TokenType { Bytes, Uint16, Uint32 };

/// Upper bounds of tokens as inputs of the model and as its targets.
struct TokenBounds {
  int64_t vocabulary, classes;

  /// The bound that `token` violates, for messages: "the vocabulary of 256";
  /// empty when it violates none.
  std::string violation(int64_t token, bool isInput, bool isTarget) const;
};

class Tokens {
public:
  /// Maps the files and checks that every token may be an input and a target.
  /// Throws InputError that names the file, the position, the token and the
  /// bound.
  Tokens(const std::vector<std::string> &paths, TokenType type,
         TokenBounds bounds);
  ~Tokens();
  Tokens(const Tokens &) = delete;
  Tokens &operator=(const Tokens &) = delete;

  int64_t size() const { return total; }
  /// Tokens [position, position + count) to `out`.
  void read(int64_t position, int64_t count, int32_t *out) const;

private:
  struct File {
    std::string path;
    const char *data;
    int64_t bytes;
    int64_t first, tokens; // position of its first token; how many
  };
  void map(const std::string &path);
  void check(const File &file, TokenBounds bounds) const;

  TokenType type;
  int64_t total = 0;
  std::vector<File> files;
};

} // namespace rota

#endif // ROTA_RUNTIME_DATA_TOKENS_H
