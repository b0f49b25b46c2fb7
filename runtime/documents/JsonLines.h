// SPDX-License-Identifier: Apache-2.0
//
// The lines of a file with a document in each line.
#ifndef ROTA_RUNTIME_DOCUMENTS_JSONLINES_H
#define ROTA_RUNTIME_DOCUMENTS_JSONLINES_H

#include "runtime/documents/TextInput.h"

namespace rota {

/// One thread reads it.
class LineReader {
public:
  /// `line` and `offset`: lines and bytes of `input` that came before.
  LineReader(std::unique_ptr<TextInput> input, int64_t line, int64_t offset)
      : input(std::move(input)), lines(line), bytes(offset) {}

  /// Most bytes of a line: one is in memory as a whole.
  static constexpr size_t kMostBytes = 32 << 20;

  /// The next line that is not blank, without its end; false: there is none.
  /// Throws InputError for one that is too long.
  bool next(std::string &line);

  int64_t number() const { return lines; } // of the last line, from 1
  int64_t offset() const { return bytes; } // of its end
  const TextInput &text() const { return *input; }

private:
  bool take(std::string &line);

  std::unique_ptr<TextInput> input;
  int64_t lines, bytes;
  std::string buffer;
  size_t used = 0; // bytes of the buffer
};

} // namespace rota

#endif // ROTA_RUNTIME_DOCUMENTS_JSONLINES_H
