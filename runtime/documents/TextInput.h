// SPDX-License-Identifier: Apache-2.0
//
// A file of text that is read from its beginning to its end, as it is or out of
// gzip or zstd. The end of its name says which.
#ifndef ROTA_RUNTIME_DOCUMENTS_TEXTINPUT_H
#define ROTA_RUNTIME_DOCUMENTS_TEXTINPUT_H

#include "runtime/data/DataFile.h"
#include "runtime/data/TextNames.h"

#include <memory>
#include <string>

namespace rota {

/// One thread reads it.
class TextInput {
public:
  virtual ~TextInput() = default;

  /// Up to `count` bytes of text to `out`; 0: the end. Throws InputError where
  /// compressed data is damaged or cut off, RunError as DataFile::read.
  size_t read(char *out, size_t count);
  /// Leaves out bytes of text. Throws RunError when there are fewer.
  virtual void skip(int64_t count);
  /// Bytes of the file that were read, of fileBytes().
  int64_t fileRead() const { return taken; }
  int64_t fileBytes() const { return file.bytes(); }
  const std::string &path() const { return file.path(); }

protected:
  explicit TextInput(const std::string &path) : file(path, /*keepOpen=*/true) {}

  virtual size_t readText(char *out, size_t count) = 0;
  /// Up to `count` bytes of the file; 0: the end.
  size_t readFile(char *out, size_t count);
  [[noreturn]] void fail(const char *form, const std::string &reason) const;

  DataFile file;
  int64_t taken = 0; // bytes of the file
  int64_t given = 0; // bytes of text
};

/// Opens a file of text. Throws InputError when it cannot be opened.
std::unique_ptr<TextInput> openText(const std::string &path);

} // namespace rota

#endif // ROTA_RUNTIME_DOCUMENTS_TEXTINPUT_H
