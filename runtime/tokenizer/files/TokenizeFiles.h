// SPDX-License-Identifier: Apache-2.0
//
// Files of text to one file of tokens. A file is a document, but for .jsonl,
// which has one in each line: its tokens are those of the whole text in one
// piece, though no more than some megabytes of it are in memory.
#ifndef ROTA_RUNTIME_TOKENIZER_TOKENIZEFILES_H
#define ROTA_RUNTIME_TOKENIZER_TOKENIZEFILES_H

#include "runtime/tokenizer/files/TextParts.h"

namespace rota {

struct TokenizeRequest {
  const Tokenizer &tokenizer;
  std::vector<std::string> files = {};
  std::string output = {};
  int threads = 1;
  bool useTemplate = true;              // the tokenizer's, around each document
  std::optional<int32_t> endToken = {}; // after each document
  ReadOptions read = {};
  int64_t bound = 0; // upper bound of the tokens; 0: none
  /// What the texts are, for the key of an unfinished output; 0: their files as
  /// the file system knows them.
  uint64_t texts = 0;
  /// Called by the caller's thread with the progress and the share of all
  /// bytes, now and then and at the end.
  std::function<void(const TokenProgress &, double share)> report = {};
};

/// A number for all that the tokens depend on.
uint64_t keyOf(const TokenizeRequest &request);

/// Files as the file system knows them: names, sizes, times.
std::string describeFiles(const std::vector<std::string> &files);

struct TokenizeSummary {
  TokenProgress begin; // all zeros: not resumed
  TokenProgress end;
  int bytesOfToken = 0;
};

/// Writes the tokens, which do not depend on the number of threads. Goes on
/// where a process with the same request ended (TokenOutput.h). Throws
/// InputError as PartReader does, for texts without tokens, and for a token
/// that is not below the bound; RunError when a file cannot be read or written.
TokenizeSummary tokenizeFiles(const TokenizeRequest &request);

} // namespace rota

#endif // ROTA_RUNTIME_TOKENIZER_TOKENIZEFILES_H
