// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/Tokens.h"
#include "runtime/Error.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace rota {

static int64_t tokenBytes(TokenType type) {
  switch (type) {
  case TokenType::Bytes:
    return 1;
  case TokenType::Uint16:
    return 2;
  case TokenType::Uint32:
    return 4;
  }
  return 1;
}

/// Token `i` of mapped data, which is aligned to a page.
static uint32_t tokenAt(const char *data, TokenType type, int64_t i) {
  switch (type) {
  case TokenType::Bytes:
    return reinterpret_cast<const uint8_t *>(data)[i];
  case TokenType::Uint16:
    return reinterpret_cast<const uint16_t *>(data)[i];
  case TokenType::Uint32:
    return reinterpret_cast<const uint32_t *>(data)[i];
  }
  return 0;
}

std::string TokenBounds::violation(int64_t token, bool isInput,
                                   bool isTarget) const {
  if (isInput && (token < 0 || token >= vocabulary))
    return fmt::format("the vocabulary of {}", vocabulary);
  if (isTarget && (token < 0 || token >= classes))
    return fmt::format("the {} classes of the loss", classes);
  return "";
}

Tokens::Tokens(const std::vector<std::string> &paths, TokenType type,
               TokenBounds bounds)
    : type(type) {
  for (const std::string &path : paths)
    map(path);
  if (std::min(bounds.vocabulary, bounds.classes) <
      int64_t(1) << (8 * tokenBytes(type)))
    for (const File &file : files)
      check(file, bounds);
}

Tokens::~Tokens() {
  for (const File &file : files)
    munmap(const_cast<char *>(file.data), static_cast<size_t>(file.bytes));
}

void Tokens::map(const std::string &path) {
  int handle = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (handle < 0)
    throw InputError(
        fmt::format("cannot open '{}': {}", path, std::strerror(errno)));
  struct stat status;
  bool regular = fstat(handle, &status) == 0 && S_ISREG(status.st_mode);
  int64_t bytes = regular ? status.st_size : 0, unit = tokenBytes(type);
  std::string problem;
  if (!regular)
    problem = "expected a regular file";
  else if (bytes == 0)
    problem = "the file is empty";
  else if (bytes % unit != 0)
    problem =
        fmt::format("expected a multiple of {} bytes, got {}", unit, bytes);
  void *mapped = MAP_FAILED;
  if (problem.empty()) {
    mapped = mmap(nullptr, static_cast<size_t>(bytes), PROT_READ, MAP_PRIVATE,
                  handle, 0);
    if (mapped == MAP_FAILED)
      problem = fmt::format("cannot map: {}", std::strerror(errno));
  }
  close(handle);
  if (!problem.empty())
    throw InputError(fmt::format("'{}': {}", path, problem));
  files.push_back(
      {path, static_cast<const char *>(mapped), bytes, total, bytes / unit});
  total += bytes / unit;
}

void Tokens::check(const File &file, TokenBounds bounds) const {
  constexpr int64_t kBlock = 1 << 16;
  int64_t bound = std::min(bounds.vocabulary, bounds.classes);
  for (int64_t begin = 0; begin < file.tokens; begin += kBlock) {
    int64_t end = std::min(file.tokens, begin + kBlock);
    uint32_t largest = 0; // a maximum is fast; the position is for errors alone
    for (int64_t i = begin; i < end; ++i)
      largest = std::max(largest, tokenAt(file.data, type, i));
    if (largest < bound)
      continue;
    for (int64_t i = begin; i < end; ++i)
      if (uint32_t token = tokenAt(file.data, type, i); token >= bound)
        throw InputError(fmt::format(
            "'{}': position {}: expected a token below {}, got {}", file.path,
            i, bounds.violation(token, true, true), token));
  }
}

void Tokens::read(int64_t position, int64_t count, int32_t *out) const {
  auto file = std::upper_bound(
      files.begin(), files.end(), position,
      [](int64_t value, const File &f) { return value < f.first; });
  --file;
  for (int64_t i = position - file->first; count > 0; ++i, --count) {
    if (i == file->tokens) {
      ++file;
      i = 0;
    }
    *out++ = static_cast<int32_t>(tokenAt(file->data, type, i));
  }
}

} // namespace rota
