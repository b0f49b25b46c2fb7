// SPDX-License-Identifier: Apache-2.0
//
// The file of tokens that `rota tokenize` writes: an array of numpy of one
// dimension, of uint16 or uint32. A comment in its header, which numpy skips,
// names the tokenizer:
//     {'descr': '<u2', 'fortran_order': False, 'shape': (12,), }
//     # tokenizer 0123456789abcdef, vocabulary 50257
#ifndef ROTA_RUNTIME_TOKENIZER_TOKENOUTPUT_H
#define ROTA_RUNTIME_TOKENIZER_TOKENOUTPUT_H

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace rota {

/// What the header says of the tokenizer.
struct TokenOrigin {
  uint64_t hash;
  int64_t vocabulary;

  bool operator==(const TokenOrigin &) const = default;
};

/// The comment of a file; nothing where there is none. Throws InputError when
/// the file cannot be read.
std::optional<TokenOrigin> readTokenOrigin(const std::string &path);

/// How far the tokens of an unfinished file go.
struct TokenProgress {
  int64_t file = 0;   // index of the file of text that is at work
  int64_t offset = 0; // bytes of it that are done
  int64_t tokens = 0; // in all
  int64_t bytes = 0;  // of all files that are done
};

/// Writes PATH.partial, and beside it PATH.partial.json with the progress, and
/// gives the file its name when it is whole. A process that ends before leaves
/// both, from which another one with the same key goes on. Functions throw
/// RunError when a file cannot be written.
class TokenOutput {
public:
  /// `key`: what the tokens depend on. Progress of another key is dropped.
  TokenOutput(std::string path, TokenOrigin origin, uint64_t key);
  ~TokenOutput();
  TokenOutput(const TokenOutput &) = delete;
  TokenOutput &operator=(const TokenOutput &) = delete;

  /// Where the writer goes on; all zeros: at the beginning.
  const TokenProgress &begin() const { return started; }

  void add(std::span<const int32_t> tokens);
  /// Makes the tokens so far those of `progress`, for another process.
  void save(const TokenProgress &progress);
  /// Writes the header and gives the file its name.
  void commit();
  /// Removes the unfinished file.
  void remove();

  int bytesOfToken() const { return unit; }

private:
  [[noreturn]] void fail(const std::string &name) const;
  void write(int64_t offset, const char *data, size_t bytes);
  void flush();
  bool resume();

  const std::string path, partial, journal;
  const TokenOrigin origin;
  const uint64_t key;
  const int unit; // bytes of a token
  int file = -1;
  TokenProgress started;
  int64_t written = 0; // tokens in the file
  std::string buffer;
};

} // namespace rota

#endif // ROTA_RUNTIME_TOKENIZER_TOKENOUTPUT_H
