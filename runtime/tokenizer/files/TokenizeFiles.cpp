// SPDX-License-Identifier: Apache-2.0
#include "runtime/tokenizer/files/TokenizeFiles.h"
#include "runtime/Error.h"
#include "runtime/checkpoint/Hash.h"
#include "runtime/tokenizer/files/EncodeQueue.h"

#include <chrono>
#include <filesystem>
#include <fmt/format.h>
#include <sys/stat.h>

namespace rota {

static constexpr double kReportSeconds = 0.5, kSaveSeconds = 5;

std::string describeFiles(const std::vector<std::string> &files) {
  std::string text;
  for (const std::string &path : files) {
    struct stat status = {};
    stat(path.c_str(), &status);
    std::error_code unknown;
    text += fmt::format(
        "\n{} {} {}.{}", std::filesystem::absolute(path, unknown).string(),
        status.st_size, status.st_mtim.tv_sec, status.st_mtim.tv_nsec);
  }
  return text;
}

uint64_t keyOf(const TokenizeRequest &request) {
  const RecordOptions &records = request.read.records;
  std::string key = fmt::format(
      "rota tokenize 2 {} {} {} '{}' {}", hexadecimal(request.tokenizer.hash),
      request.useTemplate, request.endToken.value_or(-1), records.field,
      request.read.skipBadLines);
  if (const std::optional<ChatForm> &chat = records.chat)
    key += fmt::format(" {} '{}' '{}'", nameOf(*chat->family), chat->begin,
                       chat->end);
  key += request.texts != 0 ? hexadecimal(request.texts)
                            : describeFiles(request.files);
  return hashOf(key);
}

namespace {

DocumentFrame frameOf(const TokenizeRequest &request) {
  DocumentFrame frame;
  if (request.useTemplate)
    frame = {request.tokenizer.before, request.tokenizer.after};
  std::optional<int32_t> end = request.endToken;
  if (end && (frame.after.empty() || frame.after.back() != *end))
    frame.after.push_back(*end);
  return frame;
}

class Work {
public:
  explicit Work(const TokenizeRequest &request)
      : request(request), frame(frameOf(request)),
        output(request.output,
               {request.tokenizer.hash, request.tokenizer.vocabulary},
               keyOf(request)),
        progress(output.begin()) {}

  TokenizeSummary run();

private:
  void encodeAll();
  void write(const TextPart &part);
  void checkBound(const TextPart &part) const;

  using Clock = std::chrono::steady_clock;
  static bool isDue(Clock::time_point &last, double seconds) {
    Clock::time_point now = Clock::now();
    bool isDue = std::chrono::duration<double>(now - last).count() >= seconds;
    if (isDue)
      last = now;
    return isDue;
  }

  const TokenizeRequest &request;
  const DocumentFrame frame;
  TokenOutput output;
  TokenProgress progress;
  Clock::time_point reported = Clock::now(), saved = Clock::now();
};

void Work::checkBound(const TextPart &part) const {
  for (int32_t token : part.tokens)
    if (token >= request.bound)
      throw InputError(fmt::format(
          "'{}': expected tokens of the model's vocabulary of {}, got {}, "
          "'{}', of the tokenizer '{}'",
          request.files[part.file], request.bound, token,
          request.tokenizer.decode({&token, 1}, /*skipSpecial=*/false),
          request.tokenizer.path));
}

void Work::write(const TextPart &part) {
  if (request.bound > 0)
    checkBound(part);
  output.add(part.tokens, part.counts);
  int64_t tokens = progress.tokens + std::ssize(part.tokens);
  progress = part.end;
  progress.tokens = tokens;
  if (request.report && isDue(reported, kReportSeconds))
    request.report(progress, part.share);
  if (part.canResume && isDue(saved, kSaveSeconds))
    output.save(progress);
}

void Work::encodeAll() {
  PartReader reader(request.tokenizer, request.files, request.read, progress);
  EncodeQueue queue(request.tokenizer, frame, request.threads);
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
    request.report(progress, 1.0);
  summary.end = progress;
  return summary;
}

} // namespace

TokenizeSummary tokenizeFiles(const TokenizeRequest &request) {
  return Work(request).run();
}

} // namespace rota
