// SPDX-License-Identifier: Apache-2.0
//
// Files of text in parts of some hundred kilobytes, which can become tokens on
// their own.
#ifndef ROTA_RUNTIME_TOKENIZER_TEXTPARTS_H
#define ROTA_RUNTIME_TOKENIZER_TEXTPARTS_H

#include "runtime/documents/JsonLines.h"
#include "runtime/documents/Records.h"
#include "runtime/tokenizer/files/CutText.h"
#include "runtime/tokenizer/files/TokenOutput.h"

#include <functional>

namespace rota {

/// A document, or a part of its text.
struct DocumentPiece {
  Document document;
  TextPlace place = TextPlace::Start;
  bool isLast = true; // of its document
};

struct TextPart {
  std::vector<DocumentPiece> pieces;
  size_t file = 0;       // index of their file
  TokenProgress end;     // when the part is done, without tokens
  bool canResume = true; // a reader can begin after it
  double share = 0;      // of the bytes of all files that are read
  std::vector<int32_t> tokens;
  std::string counts; // a byte for each token, 0 where it does not count as a
                      // target; empty: all do
};

/// How documents are read.
struct ReadOptions {
  RecordOptions records = {};
  bool skipBadLines = false; // of .jsonl
};

/// The parts of all files, one after the other. They depend on the texts and
/// the tokenizer alone, not on where a reader began.
class PartReader {
public:
  /// `begin`: what was read before. Throws InputError when a file cannot be
  /// opened.
  PartReader(const Tokenizer &tokenizer, const std::vector<std::string> &files,
             const ReadOptions &options, const TokenProgress &begin);

  bool isAtEnd() const { return progress.file == std::ssize(files); }

  /// Throws InputError for a line that is no record, unless these are skipped,
  /// and for a text without a place to cut in 16 MiB.
  TextPart next();

private:
  void open();
  void addText(TextPart &part);
  void addLines(TextPart &part);
  /// Makes `rest` the next document of the lines; false: there is none.
  bool readDocument();
  /// Bytes up to the end of a part of a text, `least` or more: `see` gives the
  /// next n bytes of the text, or fewer at its end.
  size_t findEnd(size_t least,
                 const std::function<std::string_view(size_t n)> &see);
  std::string_view fill(size_t bytes);

  const std::vector<std::string> &files;
  const ReadOptions &options;
  TextCutter cutter;
  TokenProgress progress;
  int64_t fileBytes = 0, doneBytes = 0; // of all files, and of those before

  std::unique_ptr<TextInput> input; // of a file that is one document
  std::string buffer;
  std::unique_ptr<LineReader> lines; // of a file with documents in lines
  std::optional<Document> rest;      // one of them, which is not done
  size_t taken = 0;                  // bytes of `rest` that came before
};

} // namespace rota

#endif // ROTA_RUNTIME_TOKENIZER_TEXTPARTS_H
