// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/cuda/AlgorithmFile.h"
#include "runtime/files/WriteFile.h"

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string_view>
#include <sys/file.h>
#include <system_error>
#include <unistd.h>

namespace rota::cuda {
namespace {

constexpr std::string_view kFirstLine = "rota cublasLt algorithms 1\n";
constexpr int kWordDigits = 16;

/// The lock of all processes that use the file. It is a file of its own, since
/// the other one is replaced. Throws std::system_error.
class FileLock {
public:
  explicit FileLock(const std::string &path)
      : file(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666)) {
    if (file < 0)
      fail();
    while (flock(file, LOCK_EX) != 0) {
      if (errno == EINTR)
        continue;
      int why = errno;
      close(file);
      errno = why;
      fail();
    }
  }
  ~FileLock() { close(file); }
  FileLock(const FileLock &) = delete;
  FileLock &operator=(const FileLock &) = delete;

private:
  [[noreturn]] static void fail() {
    throw std::system_error(errno, std::generic_category());
  }
  int file;
};

uint64_t checksumOf(std::string_view text) {
  uint64_t sum = 0xcbf29ce484222325; // FNV-1a
  for (unsigned char byte : text)
    sum = (sum ^ byte) * 0x100000001b3;
  return sum;
}

std::string lastLine(std::string_view text) {
  return fmt::format("end {:016x}\n", checksumOf(text));
}

/// Digits of whole words.
bool readHex(std::string_view digits, BlasLtAlgorithm &algorithm) {
  if (digits.size() != std::size(algorithm.data) * kWordDigits)
    return false;
  for (uint64_t &word : algorithm.data) {
    const char *end = digits.data() + kWordDigits;
    if (std::from_chars(digits.data(), end, word, 16).ptr != end)
      return false;
    digits.remove_prefix(kWordDigits);
  }
  return true;
}

std::string toText(const AlgorithmEntries &entries) {
  std::string text(kFirstLine);
  for (const auto &[key, algorithm] : entries) {
    text += key + '\t';
    for (uint64_t word : algorithm.data)
      text += fmt::format("{:016x}", word);
    text += '\n';
  }
  return text + lastLine(text);
}

/// Nothing where the text is not exactly what toText writes.
std::optional<AlgorithmEntries> fromText(std::string_view text) {
  size_t end = text.rfind("end ");
  if (end == text.npos || !text.starts_with(kFirstLine) ||
      text.substr(end) != lastLine(text.substr(0, end)))
    return std::nullopt;
  AlgorithmEntries entries;
  text = text.substr(kFirstLine.size(), end - kFirstLine.size());
  while (!text.empty()) {
    size_t tab = text.find('\t'), newline = text.find('\n');
    BlasLtAlgorithm algorithm;
    if (newline == text.npos || tab > newline ||
        !readHex(text.substr(tab + 1, newline - tab - 1), algorithm))
      return std::nullopt;
    entries.emplace(text.substr(0, tab), algorithm);
    text.remove_prefix(newline + 1);
  }
  return entries;
}

/// The entries of the file, empty where there is no file yet; nothing where it
/// cannot be read.
std::optional<AlgorithmEntries> readEntries(const std::string &path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error) && !error)
    return AlgorithmEntries();
  std::ifstream stream(path, std::ios::binary);
  std::stringstream text;
  text << stream.rdbuf(); // nothing of a folder
  return fromText(text.view());
}

} // namespace

std::string defaultAlgorithmFile() {
  constexpr const char *kName = "/rota/cublaslt-algorithms";
  if (const char *path = std::getenv("ROTA_ALGORITHM_FILE"))
    return path;
  const char *cache = std::getenv("XDG_CACHE_HOME");
  if (cache && *cache)
    return std::string(cache) + kName;
  const char *home = std::getenv("HOME");
  return home && *home ? std::string(home) + "/.cache" + kName : "";
}

AlgorithmFile::AlgorithmFile(std::string path) : path(std::move(path)) {
  if (!isOpen())
    return;
  if (auto found = readEntries(this->path))
    entries = std::move(*found);
  else
    fmt::print(stderr,
               "warning: '{}' is damaged or unreadable, and is ignored\n",
               this->path);
}

std::optional<BlasLtAlgorithm>
AlgorithmFile::find(const std::string &key) const {
  auto it = entries.find(key);
  if (it == entries.end())
    return std::nullopt;
  return it->second;
}

std::optional<BlasLtAlgorithm>
AlgorithmFile::keep(const std::string &key, const BlasLtAlgorithm &algorithm) {
  if (!isOpen())
    return std::nullopt;
  try {
    auto folder = std::filesystem::path(path).parent_path();
    if (!folder.empty())
      std::filesystem::create_directories(folder);
    FileLock lock(path + ".lock");
    if (auto others = readEntries(path))
      entries.merge(*others);
    if (entries.emplace(key, algorithm).second)
      writeFile(path, {toText(entries)});
  } catch (const std::exception &error) {
    fmt::print(stderr, "warning: algorithms are not kept in '{}': {}\n", path,
               error.what());
    path.clear();
    entries.erase(key);
    return std::nullopt;
  }
  return entries.at(key);
}

} // namespace rota::cuda
