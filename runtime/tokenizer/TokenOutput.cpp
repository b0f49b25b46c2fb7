// SPDX-License-Identifier: Apache-2.0
#include "runtime/tokenizer/TokenOutput.h"
#include "runtime/Error.h"
#include "runtime/checkpoint/Hash.h"
#include "runtime/data/DataFile.h"
#include "runtime/files/WriteFile.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <unistd.h>

namespace rota {

static constexpr size_t kHeaderBytes = 256;
static constexpr size_t kPrefixBytes = 10; // magic number, version, length
static constexpr std::string_view kMagic("\x93NUMPY\x01\x00", 8);
static constexpr std::string_view kComment = "# tokenizer ";
static constexpr std::string_view kVocabulary = ", vocabulary ";
static constexpr size_t kBuffer = 1 << 20;

static std::string headerOf(const TokenOrigin &origin, int unit,
                            int64_t tokens) {
  std::string text = fmt::format(
      "{{'descr': '<u{}', 'fortran_order': False, 'shape': ({},), }} {}{}{}{}",
      unit, tokens, kComment, hexadecimal(origin.hash), kVocabulary,
      origin.vocabulary);
  text.resize(kHeaderBytes - kPrefixBytes - 1, ' ');
  text += '\n';
  std::string header(kMagic);
  header += static_cast<char>(text.size() & 0xFF);
  header += static_cast<char>(text.size() >> 8);
  return header + text;
}

std::optional<TokenOrigin> readTokenOrigin(const std::string &path) {
  DataFile file(path, /*keepOpen=*/false);
  if (file.bytes() < static_cast<int64_t>(kHeaderBytes))
    return std::nullopt;
  std::string header(kHeaderBytes, '\0');
  file.read(0, static_cast<int64_t>(header.size()), header.data());
  std::string_view rest = header;
  size_t comment = rest.find(kComment);
  if (!rest.starts_with(kMagic) || comment == rest.npos)
    return std::nullopt;
  rest.remove_prefix(comment + kComment.size());
  TokenOrigin origin;
  const char *end = header.data() + header.size();
  auto hash = std::from_chars(rest.data(), end, origin.hash, 16);
  rest.remove_prefix(static_cast<size_t>(hash.ptr - rest.data()));
  if (hash.ec != std::errc() || !rest.starts_with(kVocabulary))
    return std::nullopt;
  auto size =
      std::from_chars(rest.data() + kVocabulary.size(), end, origin.vocabulary);
  return size.ec == std::errc() ? std::optional(origin) : std::nullopt;
}

TokenOutput::TokenOutput(std::string path, TokenOrigin origin, uint64_t key)
    : path(std::move(path)), partial(this->path + ".partial"),
      journal(partial + ".json"), origin(origin), key(key),
      unit(origin.vocabulary <= 1 << 16 ? 2 : 4) {
  file = open(partial.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (file < 0)
    fail(partial);
  if (!resume()) {
    started = {};
    if (ftruncate(file, 0) != 0)
      fail(partial);
  }
  written = started.tokens;
}

TokenOutput::~TokenOutput() {
  if (file >= 0)
    close(file);
}

void TokenOutput::fail(const std::string &name) const {
  throw RunError(
      fmt::format("cannot write '{}': {}", name, std::strerror(errno)));
}

bool TokenOutput::resume() {
  int text = open(journal.c_str(), O_RDONLY | O_CLOEXEC);
  if (text < 0)
    return false;
  char bytes[1024];
  ssize_t size = read(text, bytes, sizeof bytes);
  close(text);
  auto saved = nlohmann::json::parse(bytes, bytes + std::max<ssize_t>(size, 0),
                                     nullptr, /*allow_exceptions=*/false);
  auto number = [&](const char *name) {
    return saved.is_object() && saved.contains(name) &&
                   saved[name].is_number_integer()
               ? saved[name].get<int64_t>()
               : int64_t(-1);
  };
  started = {number("file"), number("offset"), number("tokens"),
             number("bytes")};
  if (!saved.is_object() || saved.value("key", "") != hexadecimal(key) ||
      started.file < 0 || started.offset < 0 || started.tokens < 0 ||
      started.bytes < 0)
    return false;
  int64_t end = static_cast<int64_t>(kHeaderBytes) + started.tokens * unit;
  struct stat status;
  return fstat(file, &status) == 0 && status.st_size >= end &&
         ftruncate(file, end) == 0;
}

void TokenOutput::write(int64_t offset, const char *data, size_t bytes) {
  while (bytes > 0) {
    ssize_t n = pwrite(file, data, bytes, offset);
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      fail(partial);
    data += n;
    offset += n;
    bytes -= static_cast<size_t>(n);
  }
}

void TokenOutput::flush() {
  write(static_cast<int64_t>(kHeaderBytes) + written * unit, buffer.data(),
        buffer.size());
  written += static_cast<int64_t>(buffer.size()) / unit;
  buffer.clear();
}

void TokenOutput::add(std::span<const int32_t> tokens) {
  for (int32_t token : tokens)
    for (int n = 0; n < unit; ++n) // little endian
      buffer += static_cast<char>(static_cast<uint32_t>(token) >> (8 * n));
  if (buffer.size() >= kBuffer)
    flush();
}

void TokenOutput::save(const TokenProgress &progress) {
  flush();
  if (fdatasync(file) != 0)
    fail(partial);
  writeFile(journal, {nlohmann::json{{"key", hexadecimal(key)},
                                     {"file", progress.file},
                                     {"offset", progress.offset},
                                     {"tokens", progress.tokens},
                                     {"bytes", progress.bytes}}
                          .dump()});
}

void TokenOutput::commit() {
  flush();
  std::string header = headerOf(origin, unit, written);
  write(0, header.data(), header.size());
  if (fsync(file) != 0)
    fail(partial);
  if (rename(partial.c_str(), path.c_str()) != 0)
    fail(path);
  unlink(journal.c_str());
}

void TokenOutput::remove() {
  unlink(partial.c_str());
  unlink(journal.c_str());
}

} // namespace rota
