// SPDX-License-Identifier: Apache-2.0
#include "runtime/tokenizer/files/TokenCache.h"
#include "runtime/Error.h"
#include "runtime/checkpoint/Hash.h"
#include "runtime/data/DataFile.h"
#include "runtime/data/TextNames.h"
#include "runtime/data/TokenFile.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <functional>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace rota {

namespace fs = std::filesystem;

static constexpr size_t kDigits = 16; // of a number
static constexpr std::string_view kTokensEnding = ".npy";

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

/// The time of the last use is the file's time of access: that of its content
/// stays.
static void noteUse(const std::string &path) {
  timespec now; // UTIME_NOW is some milliseconds coarse
  clock_gettime(CLOCK_REALTIME, &now);
  timespec times[] = {now, {.tv_sec = 0, .tv_nsec = UTIME_OMIT}};
  (void)!utimensat(AT_FDCWD, path.c_str(), times, 0);
}

/// Removes the tokens of this name that were used before the last kKeptTokens.
/// A file that a run has open stays there for it.
static void removeOldTokens(const std::string &folder, std::string_view name) {
  using Use = std::pair<int64_t, int64_t>; // seconds, nanoseconds
  std::vector<std::pair<Use, fs::path>> found;
  std::error_code error; // what cannot be read or removed stays
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    std::string file = entry->path().filename().string();
    struct stat status;
    if (file.starts_with(name) && file.ends_with(kTokensEnding) &&
        file.size() == name.size() + 1 + kDigits + kTokensEnding.size() &&
        stat(entry->path().c_str(), &status) == 0)
      found.push_back(
          {{status.st_atim.tv_sec, status.st_atim.tv_nsec}, entry->path()});
  }
  std::ranges::sort(found, std::greater());
  for (size_t i = kKeptTokens; i < found.size(); ++i) {
    fs::remove(found[i].second, error);
    fs::remove(found[i].second.string() + kMaskEnding, error);
  }
}

CachedTokens cacheTokens(TokenizeRequest request, const std::string &folder,
                         const std::string &item) {
  constexpr size_t kMostName = 100; // bytes of a name that are kept
  fs::path path = fs::path(item).lexically_normal();
  std::string name =
      (path.has_filename() ? path : path.parent_path()).filename().string();
  name.resize(std::min(name.size(), kMostName));
  auto pathOf = [&](uint64_t number, std::string_view ending) {
    return (fs::path(folder) /
            fmt::format("{}-{}{}", name, hexadecimal(number), ending))
        .string();
  };
  std::error_code error;
  if (fs::create_directories(folder, error); error)
    throw InputError(fmt::format(
        "cannot make folder '{}': {}; --cache-dir names another for tokens",
        folder, error.message()));
  const std::string files = describeFiles(request.files);
  NumberFile source(pathOf(hashOf(files), ".source"));
  std::optional<uint64_t> contents = source.read();
  if (!contents) {
    contents = hashContents(request.files);
    source.write(*contents);
  }
  request.texts = *contents;
  request.output = pathOf(keyOf(request), kTokensEnding);
  if (isThere(request.output)) {
    noteUse(request.output);
    return {request.output, std::nullopt};
  }
  TokenizeSummary summary = tokenizeFiles(request);
  if (describeFiles(request.files) != files) {
    fs::remove(request.output, error);
    throw RunError(
        fmt::format("'{}': the text changed while it was read", item));
  }
  noteUse(request.output);
  removeOldTokens(folder, name);
  return {request.output, summary};
}

} // namespace rota
