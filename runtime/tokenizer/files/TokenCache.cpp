// SPDX-License-Identifier: Apache-2.0
#include "runtime/tokenizer/files/TokenCache.h"
#include "runtime/Error.h"
#include "runtime/checkpoint/Hash.h"
#include "runtime/data/DataFile.h"
#include "runtime/data/TextNames.h"

#include <cerrno>
#include <charconv>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

namespace rota {

namespace fs = std::filesystem;

static constexpr size_t kDigits = 16; // of a number

/// A number for the bytes of the files, and for how they are read.
static uint64_t hashContents(const std::vector<std::string> &files) {
  constexpr int64_t kPiece = 1 << 20;
  RunningHash hash;
  std::string bytes;
  for (const std::string &path : files) {
    DataFile file(path, /*keepOpen=*/true);
    hash.add(fmt::format("{} {} {}\n", file.bytes(), hasJsonLines(path),
                         static_cast<int>(compressionOf(path))));
    for (int64_t at = 0; at < file.bytes(); at += std::ssize(bytes)) {
      bytes.resize(static_cast<size_t>(std::min(kPiece, file.bytes() - at)));
      file.read(at, std::ssize(bytes), bytes.data());
      hash.add(bytes);
    }
  }
  return hash.value();
}

namespace {

/// A file with a number, which one process at a time has.
class NumberFile {
public:
  explicit NumberFile(const std::string &path)
      : file(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666)) {
    if (!file.isOpen())
      throw InputError(fmt::format(
          "cannot write '{}': {}; --cache-dir names another folder for tokens",
          path, std::strerror(errno)));
    while (flock(file.get(), LOCK_EX) != 0 && errno == EINTR)
      ;
  }

  /// Nothing where none was written as a whole.
  std::optional<uint64_t> read() const {
    char digits[kDigits + 1];
    uint64_t number = 0;
    if (pread(file.get(), digits, sizeof digits, 0) != sizeof digits)
      return std::nullopt;
    auto [end, error] = std::from_chars(digits, digits + kDigits, number, 16);
    return error == std::errc() && end == digits + kDigits
               ? std::optional(number)
               : std::nullopt;
  }

  /// A number that cannot be kept is found again by the next process.
  void write(uint64_t number) const {
    std::string text = hexadecimal(number) + "\n";
    if (pwrite(file.get(), text.data(), text.size(), 0) != std::ssize(text))
      (void)!ftruncate(file.get(), 0);
  }

private:
  FileHandle file;
};

} // namespace

std::string cacheFolderOf(const std::string &item) {
  std::error_code unknown;
  fs::path path(item);
  return ((fs::is_directory(path, unknown) ? path : path.parent_path()) /
          ".rota-tokens")
      .string();
}

CachedTokens cacheTokens(TokenizeRequest request, const std::string &folder,
                         const std::string &item) {
  constexpr size_t kMostName = 100; // bytes of a name that are kept
  fs::path path = fs::path(item).lexically_normal();
  std::string name =
      (path.has_filename() ? path : path.parent_path()).filename().string();
  name.resize(std::min(name.size(), kMostName));
  auto pathOf = [&](uint64_t number, const char *ending) {
    return (fs::path(folder) /
            fmt::format("{}-{}{}", name, hexadecimal(number), ending))
        .string();
  };
  std::error_code error; // the next file that is opened says it
  fs::create_directories(folder, error);
  const std::string files = describeFiles(request.files);
  NumberFile source(pathOf(hashOf(files), ".source"));
  std::optional<uint64_t> contents = source.read();
  if (!contents) {
    contents = hashContents(request.files);
    source.write(*contents);
  }
  request.texts = *contents;
  request.output = pathOf(keyOf(request), ".npy");
  if (isThere(request.output))
    return {request.output, std::nullopt};
  TokenizeSummary summary = tokenizeFiles(request);
  if (describeFiles(request.files) != files) {
    fs::remove(request.output, error);
    throw RunError(
        fmt::format("'{}': the text changed while it was read", item));
  }
  return {request.output, summary};
}

} // namespace rota
