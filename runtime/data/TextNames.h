// SPDX-License-Identifier: Apache-2.0
//
// What the end of a name says of a file of text: NAME.jsonl has a document in
// each line; .gz or .zst after that, or after another name, is compression.
#ifndef ROTA_RUNTIME_DATA_TEXTNAMES_H
#define ROTA_RUNTIME_DATA_TEXTNAMES_H

#include <string_view>

namespace rota {

enum class Compression { None, Gzip, Zstd };

inline Compression compressionOf(std::string_view path) {
  return path.ends_with(".gz")    ? Compression::Gzip
         : path.ends_with(".zst") ? Compression::Zstd
                                  : Compression::None;
}

/// Whether each line is a document.
inline bool hasJsonLines(std::string_view path) {
  if (compressionOf(path) != Compression::None)
    path = path.substr(0, path.rfind('.'));
  return path.ends_with(".jsonl");
}

/// Whether a name says that the file is text which has to become tokens: its
/// bytes are not what a model trains on.
inline bool needsTokens(std::string_view path) {
  return hasJsonLines(path) || compressionOf(path) != Compression::None;
}

} // namespace rota

#endif // ROTA_RUNTIME_DATA_TEXTNAMES_H
