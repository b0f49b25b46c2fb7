// SPDX-License-Identifier: Apache-2.0
#include "runtime/tokenizer/files/TokenOutput.h"
#include "runtime/Error.h"
#include "runtime/checkpoint/Hash.h"
#include "runtime/data/TokenFile.h"
#include "runtime/files/WriteFile.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace rota {

static constexpr auto kHeaderBytes = static_cast<size_t>(kOriginHeaderBytes);
static constexpr size_t kPrefixBytes = 10; // magic number, version, length
static constexpr std::string_view kMagic("\x93NUMPY\x01\x00", 8);
static constexpr size_t kBuffer = 1 << 20;

static std::string headerOf(const TokenOrigin &origin, int unit,
                            int64_t tokens) {
  std::string text = fmt::format(
      "{{'descr': '<u{}', 'fortran_order': False, 'shape': ({},), }} {}", unit,
      tokens, originComment(origin));
  text.resize(kHeaderBytes - kPrefixBytes - 1, ' ');
  text += '\n';
  std::string header(kMagic);
  header += static_cast<char>(text.size() & 0xFF);
  header += static_cast<char>(text.size() >> 8);
  return header + text;
}

/// Opens or makes a file that nobody else has open: waits for others, which may
/// have given it another name or removed it.
static int openHeld(const std::string &path) {
  for (;;) {
    int file =
        open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (file < 0)
      return file;
    while (flock(file, LOCK_EX) != 0)
      if (errno != EINTR)
        return file; // the file system has no locks
    struct stat own, named;
    if (fstat(file, &own) == 0 && stat(path.c_str(), &named) == 0 &&
        own.st_ino == named.st_ino && own.st_dev == named.st_dev)
      return file;
    close(file);
  }
}

GrowingFile::GrowingFile(std::string path, int64_t offset)
    : path(std::move(path)), offset(offset), file(openHeld(this->path)) {
  if (file < 0)
    fail(this->path);
}

GrowingFile::~GrowingFile() {
  if (file >= 0)
    close(file);
}

void GrowingFile::fail(const std::string &name) const {
  throw RunError(
      fmt::format("cannot write '{}': {}", name, std::strerror(errno)));
}

bool GrowingFile::resume(int64_t bytes) {
  struct stat status;
  if (fstat(file, &status) != 0 || status.st_size < offset + bytes ||
      ftruncate(file, offset + bytes) != 0)
    return false;
  written = bytes;
  return true;
}

void GrowingFile::clear() {
  if (ftruncate(file, 0) != 0)
    fail(path);
  written = 0;
  buffer.clear();
}

void GrowingFile::write(int64_t at, std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t n = pwrite(file, bytes.data(), bytes.size(), at);
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      fail(path);
    bytes.remove_prefix(static_cast<size_t>(n));
    at += n;
  }
}

void GrowingFile::flush() {
  write(offset + written, buffer);
  written += std::ssize(buffer);
  buffer.clear();
}

void GrowingFile::add(std::string_view bytes) {
  buffer += bytes;
  if (buffer.size() >= kBuffer)
    flush();
}

void GrowingFile::save() {
  flush();
  if (fdatasync(file) != 0)
    fail(path);
}

void GrowingFile::commit(std::string_view beginning, const std::string &name) {
  flush();
  write(0, beginning);
  if (fsync(file) != 0)
    fail(path);
  if (rename(path.c_str(), name.c_str()) != 0)
    fail(name);
}

void GrowingFile::remove() { unlink(path.c_str()); }

TokenOutput::TokenOutput(std::string path, TokenOrigin origin, uint64_t key)
    : path(std::move(path)), journal(this->path + ".partial.json"),
      origin(origin), key(key), unit(origin.vocabulary <= 1 << 16 ? 2 : 4),
      tokens(this->path + ".partial", kHeaderBytes) {
  if (resume())
    return;
  started = {};
  mask.reset();
  tokens.clear();
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
  if (!saved.is_object() || saved.value("key", "") != hexadecimal(key))
    return false;
  bool isWhole = true;
  auto number = [&](const char *name) {
    auto found = saved.find(name);
    bool isThere = found != saved.end() && found->is_number_integer() &&
                   found->get<int64_t>() >= 0;
    isWhole = isWhole && isThere;
    return isThere ? found->get<int64_t>() : 0;
  };
  started = {number("file"),  number("offset"), number("tokens"),
             number("bytes"), number("lines"),  number("bad_lines")};
  if (number("mask") > 0)
    mask.emplace(path + kMaskEnding + ".partial", 0);
  return isWhole && tokens.resume(started.tokens * unit) &&
         (!mask || mask->resume(started.tokens));
}

/// All tokens so far count.
void TokenOutput::beginMask() {
  mask.emplace(path + kMaskEnding + ".partial", 0);
  mask->clear();
  for (int64_t left = tokens.bytes() / unit; left > 0;) {
    auto count = std::min<int64_t>(left, kBuffer);
    mask->add(std::string(static_cast<size_t>(count), '\1'));
    left -= count;
  }
}

void TokenOutput::add(std::span<const int32_t> added, std::string_view counts) {
  if (!counts.empty() && !mask)
    beginMask();
  if (mask)
    mask->add(counts.empty() ? std::string(added.size(), '\1')
                             : std::string(counts));
  std::string bytes;
  bytes.reserve(added.size() * static_cast<size_t>(unit));
  for (int32_t token : added)
    for (int n = 0; n < unit; ++n) // little endian
      bytes += static_cast<char>(static_cast<uint32_t>(token) >> (8 * n));
  tokens.add(bytes);
}

void TokenOutput::save(const TokenProgress &progress) {
  tokens.save();
  if (mask)
    mask->save();
  writeFile(journal, {nlohmann::json{{"key", hexadecimal(key)},
                                     {"file", progress.file},
                                     {"offset", progress.offset},
                                     {"tokens", progress.tokens},
                                     {"bytes", progress.bytes},
                                     {"lines", progress.lines},
                                     {"bad_lines", progress.badLines},
                                     {"mask", mask ? 1 : 0}}
                          .dump()});
}

void TokenOutput::commit() {
  std::string name = path + kMaskEnding;
  if (mask)
    mask->commit("", name);
  else // of tokens that were here before
    unlink(name.c_str());
  tokens.commit(headerOf(origin, unit, tokens.bytes() / unit), path);
  unlink(journal.c_str());
}

void TokenOutput::remove() {
  tokens.remove();
  if (mask)
    mask->remove();
  unlink(journal.c_str());
}

} // namespace rota
