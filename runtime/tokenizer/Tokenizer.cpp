// SPDX-License-Identifier: Apache-2.0
#include "runtime/tokenizer/Tokenizer.h"
#include "runtime/Error.h"
#include "runtime/checkpoint/Hash.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>

namespace rota {

namespace fs = std::filesystem;

static constexpr std::string_view kHubName = "tokenizer.json";
static constexpr std::string_view kModelName = "tokenizer.model";

void Tokenizer::requireKnown(std::span<const int32_t> tokens) const {
  for (int32_t token : tokens)
    if (token < 0 || token >= vocabulary)
      throw InputError(fmt::format("'{}': expected tokens from 0 to {}, got {}",
                                   path, vocabulary - 1, token));
}

std::optional<std::string> findTokenizer(const std::string &folder) {
  std::error_code error;
  for (std::string_view name : {kHubName, kModelName})
    if (fs::path path = fs::path(folder) / name; fs::exists(path, error))
      return path.string();
  return std::nullopt;
}

/// The file in a folder, or the file itself.
static std::string findFile(const std::string &path) {
  std::error_code error;
  if (!fs::is_directory(path, error))
    return path;
  if (std::optional<std::string> file = findTokenizer(path))
    return *file;
  throw InputError(fmt::format("'{}': expected {} or {} in the folder", path,
                               kHubName, kModelName));
}

static std::string readBytes(const std::string &path) {
  constexpr int64_t kMost = 256 << 20; // the largest known have some 35 MiB
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  int64_t size = file ? static_cast<int64_t>(file.tellg()) : -1;
  if (size < 0)
    throw InputError(
        fmt::format("cannot read '{}': {}", path, std::strerror(errno)));
  if (size > kMost)
    throw InputError(fmt::format("'{}': expected a tokenizer of at most {} "
                                 "bytes, got {}",
                                 path, kMost, size));
  std::string bytes(static_cast<size_t>(size), '\0');
  file.seekg(0);
  if (!file.read(bytes.data(), size))
    throw InputError(
        fmt::format("cannot read '{}': {}", path, std::strerror(errno)));
  return bytes;
}

std::unique_ptr<Tokenizer> openTokenizer(const std::string &path) {
  if (std::error_code error; path == kByteTokens && !fs::exists(path, error))
    return makeByteTokenizer();
  std::string file = findFile(path);
  std::string bytes = readBytes(file);
  std::unique_ptr<Tokenizer> tokenizer = file.ends_with(".model")
                                             ? readSentencePiece(bytes, file)
                                             : readHubTokenizer(bytes, file);
  tokenizer->path = file;
  tokenizer->hash = hashOf(bytes);
  return tokenizer;
}

} // namespace rota
