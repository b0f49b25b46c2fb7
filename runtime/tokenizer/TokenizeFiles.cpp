// SPDX-License-Identifier: Apache-2.0
#include "runtime/tokenizer/TokenizeFiles.h"
#include "runtime/Error.h"
#include "runtime/checkpoint/Hash.h"
#include "runtime/data/DataFile.h"
#include "runtime/tokenizer/CutText.h"
#include "runtime/tokenizer/EncodeQueue.h"

#include <algorithm>
#include <chrono>
#include <fmt/format.h>
#include <sys/stat.h>

namespace rota {

static constexpr size_t kPart = 256 << 10;    // bytes of a part, about
static constexpr size_t kMostPart = 16 << 20; // without a place to cut
static constexpr int64_t kRead = 512 << 10;   // bytes of a read
static constexpr double kReportSeconds = 0.5, kSaveSeconds = 5;

namespace {

/// The parts of all files, one after the other.
class PartReader {
public:
  PartReader(const Tokenizer &tokenizer, const std::vector<DataFile> &files,
             const TokenProgress &begin)
      : files(files), cutter(tokenizer), file(begin.file), taken(begin.offset),
        read(begin.offset) {}

  bool isAtEnd() const { return file == std::ssize(files); }

  TextPart next() {
    const DataFile &source = files[static_cast<size_t>(file)];
    TextPart part;
    part.place = taken == 0 ? TextPlace::Start : TextPlace::Inside;
    size_t end = findEnd(source);
    part.bytes = buffer.substr(0, end);
    buffer.erase(0, end);
    taken += static_cast<int64_t>(end);
    part.file = file;
    part.offset = taken;
    part.isLast = taken == source.bytes();
    if (part.isLast) {
      ++file;
      taken = read = 0;
    }
    return part;
  }

private:
  /// Bytes of the buffer, which is filled, up to the end of the next part. It
  /// depends on the bytes alone, not on where a run was resumed.
  size_t findEnd(const DataFile &source) {
    for (size_t reach = kPart; reach <= kMostPart; reach *= 2) {
      while (buffer.size() < kPart + reach && read < source.bytes())
        fill(source);
      std::string_view seen = std::string_view(buffer).substr(0, kPart + reach);
      if (size_t place = cutter.find(seen, kPart))
        return place;
      if (read == source.bytes() && seen.size() == buffer.size())
        return buffer.size();
    }
    throw InputError(fmt::format(
        "'{}': expected a place between words where the text can be cut, got "
        "none in {} bytes from byte {}",
        source.path(), kMostPart, taken));
  }

  void fill(const DataFile &source) {
    int64_t count = std::min(kRead, source.bytes() - read);
    size_t before = buffer.size();
    buffer.resize(before + static_cast<size_t>(count));
    source.read(read, count, buffer.data() + before);
    read += count;
  }

  const std::vector<DataFile> &files;
  TextCutter cutter;
  int64_t file;
  int64_t taken, read; // bytes of the file: in parts; in parts and the buffer
  std::string buffer;
};

/// What the tokens depend on.
uint64_t keyOf(const TokenizeRequest &request) {
  std::string key = fmt::format(
      "rota tokenize 1 {} {} {}", hexadecimal(request.tokenizer.hash),
      request.useTemplate, request.endToken.value_or(-1));
  for (const std::string &path : request.files) {
    struct stat status = {};
    stat(path.c_str(), &status);
    key += fmt::format("\n{} {} {}.{}", path, status.st_size,
                       status.st_mtim.tv_sec, status.st_mtim.tv_nsec);
  }
  return hashOf(key);
}

class Work {
public:
  explicit Work(const TokenizeRequest &request)
      : request(request), files(openAll(request.files)),
        output(request.output,
               {request.tokenizer.hash, request.tokenizer.vocabulary},
               keyOf(request)),
        progress(output.begin()) {
    for (const DataFile &file : files)
      bytes += file.bytes();
  }

  TokenizeSummary run();

private:
  static std::vector<DataFile> openAll(const std::vector<std::string> &paths) {
    std::vector<DataFile> files;
    for (const std::string &path : paths)
      files.emplace_back(path, /*keepOpen=*/false);
    return files;
  }

  void encodeAll();
  void write(const TextPart &part);
  void add(std::span<const int32_t> tokens) {
    output.add(tokens);
    progress.tokens += std::ssize(tokens);
  }

  using Clock = std::chrono::steady_clock;
  static bool isDue(Clock::time_point &last, double seconds) {
    Clock::time_point now = Clock::now();
    bool isDue = std::chrono::duration<double>(now - last).count() >= seconds;
    if (isDue)
      last = now;
    return isDue;
  }

  const TokenizeRequest &request;
  const std::vector<DataFile> files;
  TokenOutput output;
  TokenProgress progress;
  int64_t bytes = 0;
  Clock::time_point reported = Clock::now(), saved = Clock::now();
};

void Work::write(const TextPart &part) {
  const Tokenizer &tokenizer = request.tokenizer;
  if (part.place == TextPlace::Start && request.useTemplate)
    add(tokenizer.before);
  add(part.tokens);
  if (part.isLast) {
    if (request.useTemplate)
      add(tokenizer.after);
    if (request.endToken)
      add({&*request.endToken, 1});
  }
  progress.bytes +=
      part.offset - (part.file == progress.file ? progress.offset : 0);
  progress.file = part.file + part.isLast;
  progress.offset = part.isLast ? 0 : part.offset;
  if (request.report && isDue(reported, kReportSeconds))
    request.report(progress, bytes);
  if (isDue(saved, kSaveSeconds))
    output.save(progress);
}

void Work::encodeAll() {
  PartReader reader(request.tokenizer, files, progress);
  EncodeQueue queue(request.tokenizer, request.threads);
  while (!reader.isAtEnd() || !queue.isEmpty())
    if (reader.isAtEnd() || queue.isFull())
      write(queue.pop());
    else
      queue.push(reader.next());
}

TokenizeSummary Work::run() {
  TokenizeSummary summary{progress, {}, output.bytesOfToken()};
  try {
    encodeAll();
    if (progress.tokens == 0)
      throw InputError(
          fmt::format("'{}': the text has no token", request.files.front()));
  } catch (const InputError &) {
    output.remove(); // the same input would end the same way
    throw;
  }
  output.commit();
  if (request.report)
    request.report(progress, bytes);
  summary.end = progress;
  return summary;
}

} // namespace

TokenizeSummary tokenizeFiles(const TokenizeRequest &request) {
  return Work(request).run();
}

} // namespace rota
