// SPDX-License-Identifier: Apache-2.0
//
// A JSON file that people write, parsed with the line and column of each key.
// Every diagnostic has a place in the file.
#ifndef ROTA_MODELS_JSONFILE_H
#define ROTA_MODELS_JSONFILE_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/MemoryBuffer.h"

#include <nlohmann/json.hpp>

#include <map>
#include <memory>
#include <optional>
#include <string>

namespace mlir::rota {

/// A location in a file; line and column count from 1, 0 means the whole file.
struct FileLocation {
  std::string file;
  unsigned line = 0, column = 0;
};

/// Prints "FILE:LINE:COLUMN", or "FILE" for the whole file.
std::string toString(const FileLocation &place);

class JsonFile {
public:
  using Report = llvm::function_ref<void(const FileLocation &place,
                                         const llvm::Twine &message)>;

  /// Reads and parses the file. The root must be an object, and no object may
  /// have a key twice. Returns null after an error that was reported.
  static std::optional<JsonFile> read(llvm::StringRef path, Report report);
  /// Parses `text` likewise; `name` stands for a path in messages.
  static std::optional<JsonFile> parse(llvm::StringRef name,
                                       llvm::StringRef text, Report report);

  const nlohmann::json &root() const { return document; }
  llvm::StringRef path() const { return file; }
  /// The value that the file holds.
  llvm::StringRef source() const { return text->getBuffer(); }

  /// The location of a key, given as "key" or "outer.inner"; the whole file
  /// when the key is not there.
  FileLocation locationOf(llvm::StringRef key) const;

private:
  static std::optional<JsonFile> parse(llvm::StringRef name,
                                       std::unique_ptr<llvm::MemoryBuffer> text,
                                       Report report);
  FileLocation locationAt(size_t offset) const;

  std::string file;
  std::unique_ptr<llvm::MemoryBuffer> text;
  nlohmann::json document;
  std::map<std::string, size_t, std::less<>> keys; // offset of the key's quote
};

/// The kind of a value for messages: "a string", "an integer", ...
llvm::StringRef kindName(const nlohmann::json &value);
/// A value as text, cut to a length that fits in a message.
std::string shortText(const nlohmann::json &value);

} // namespace mlir::rota

#endif // ROTA_MODELS_JSONFILE_H
