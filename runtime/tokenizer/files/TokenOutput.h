// SPDX-License-Identifier: Apache-2.0
//
// The file of tokens that `rota tokenize` writes: an array of numpy of one
// dimension, of uint16 or uint32, that names the tokenizer (TokenOrigin.h).
// Where tokens do not count as targets, the mask is beside it (TokenFile.h).
#ifndef ROTA_RUNTIME_TOKENIZER_TOKENOUTPUT_H
#define ROTA_RUNTIME_TOKENIZER_TOKENOUTPUT_H

#include "runtime/data/TokenOrigin.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace rota {

/// How far the tokens of an unfinished file go.
struct TokenProgress {
  int64_t file = 0;     // index of the file of text that is at work
  int64_t offset = 0;   // bytes of it that are done
  int64_t tokens = 0;   // in all
  int64_t bytes = 0;    // of text that are done, of all files
  int64_t lines = 0;    // of the file that are done
  int64_t badLines = 0; // that were left out, of all files
};

/// A file that grows at its end. Functions throw RunError when it cannot be
/// written.
class GrowingFile {
public:
  /// Opens or makes the file, and holds it: no other process has it open as
  /// well. `offset`: bytes of it that stay free at its beginning.
  GrowingFile(std::string path, int64_t offset);
  ~GrowingFile();
  GrowingFile(const GrowingFile &) = delete;
  GrowingFile &operator=(const GrowingFile &) = delete;

  /// Keeps the bytes after the offset; false: there are fewer.
  bool resume(int64_t bytes);
  void clear();
  void add(std::string_view bytes);
  int64_t bytes() const { return written + std::ssize(buffer); }
  /// Brings the bytes to the disk.
  void save();
  /// Writes the beginning, and gives the file its name.
  void commit(std::string_view beginning, const std::string &name);
  void remove();

private:
  [[noreturn]] void fail(const std::string &name) const;
  void write(int64_t at, std::string_view bytes);
  void flush();

  const std::string path;
  const int64_t offset;
  int file = -1;
  int64_t written = 0; // after the offset
  std::string buffer;
};

/// Writes PATH.partial, and beside it PATH.partial.json with the progress, and
/// gives the file its name when it is whole; a mask, PATH.mask.partial, gets
/// its name before it. A process that ends before leaves them, from which
/// another one with the same key goes on. Functions throw RunError when a file
/// cannot be written.
class TokenOutput {
public:
  /// `key`: what the tokens depend on. Progress of another key is dropped.
  TokenOutput(std::string path, TokenOrigin origin, uint64_t key);
  TokenOutput(const TokenOutput &) = delete;
  TokenOutput &operator=(const TokenOutput &) = delete;

  /// Where the writer goes on; all zeros: at the beginning.
  const TokenProgress &begin() const { return started; }

  /// `counts`: a byte for each token, 0 where it does not count as a target;
  /// empty: all do.
  void add(std::span<const int32_t> tokens, std::string_view counts = {});
  /// Makes the tokens so far those of `progress`, for another process.
  void save(const TokenProgress &progress);
  /// Writes the header and gives the files their names.
  void commit();
  /// Removes the unfinished files.
  void remove();

  int bytesOfToken() const { return unit; }

private:
  bool resume();
  void beginMask();

  const std::string path, journal;
  const TokenOrigin origin;
  const uint64_t key;
  const int unit; // bytes of a token
  TokenProgress started;
  GrowingFile tokens;
  std::optional<GrowingFile> mask; // nothing: all tokens so far count
};

} // namespace rota

#endif // ROTA_RUNTIME_TOKENIZER_TOKENOUTPUT_H
