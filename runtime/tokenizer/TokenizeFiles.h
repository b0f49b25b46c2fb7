// SPDX-License-Identifier: Apache-2.0
//
// Files of text to one file of tokens. A file is a document: its tokens are
// those of the whole text in one piece, though no more than some megabytes of
// it are in memory.
#ifndef ROTA_RUNTIME_TOKENIZER_TOKENIZEFILES_H
#define ROTA_RUNTIME_TOKENIZER_TOKENIZEFILES_H

#include "runtime/tokenizer/TokenOutput.h"
#include "runtime/tokenizer/Tokenizer.h"

#include <functional>

namespace rota {

struct TokenizeRequest {
  const Tokenizer &tokenizer;
  std::vector<std::string> files;
  std::string output;
  int threads = 1;
  bool useTemplate = true;              // the tokenizer's, around each document
  std::optional<int32_t> endToken = {}; // after each document
  /// Called by the caller's thread with the progress and the bytes of all
  /// files, now and then and at the end.
  std::function<void(const TokenProgress &, int64_t bytes)> report = {};
};

struct TokenizeSummary {
  TokenProgress begin; // all zeros: not resumed
  TokenProgress end;
  int bytesOfToken = 0;
};

/// Writes the tokens, which do not depend on the number of threads. Goes on
/// where a process with the same request ended (TokenOutput.h). Throws
/// InputError for a text without a place to cut in 16 MiB, or without tokens;
/// RunError when a file cannot be read or written.
TokenizeSummary tokenizeFiles(const TokenizeRequest &request);

} // namespace rota

#endif // ROTA_RUNTIME_TOKENIZER_TOKENIZEFILES_H
