// SPDX-License-Identifier: Apache-2.0
#include "runtime/tokenizer/files/TextParts.h"
#include "runtime/Error.h"

#include <algorithm>
#include <fmt/format.h>

namespace rota {

static constexpr size_t kPart = 256 << 10;    // bytes of a part, about
static constexpr size_t kMostPart = 16 << 20; // without a place to cut
static constexpr size_t kRead = 512 << 10;    // bytes of a read
/// Bytes of a part of a document whose tokens do not all count, about: finding
/// the tokens that do may take the square of it.
static constexpr size_t kCountedPart = 32 << 10;

PartReader::PartReader(const Tokenizer &tokenizer,
                       const std::vector<std::string> &files,
                       const ReadOptions &options, const TokenProgress &begin)
    : files(files), options(options), cutter(tokenizer), progress(begin) {
  for (size_t n = 0; n < files.size(); ++n) {
    int64_t bytes = DataFile(files[n], /*keepOpen=*/false).bytes();
    fileBytes += bytes;
    doneBytes += static_cast<int64_t>(n) < begin.file ? bytes : 0;
  }
}

void PartReader::open() {
  const std::string &path = files[static_cast<size_t>(progress.file)];
  std::unique_ptr<TextInput> text = openText(path);
  text->skip(progress.offset);
  if (hasJsonLines(path))
    lines = std::make_unique<LineReader>(std::move(text), progress.lines,
                                         progress.offset);
  else
    input = std::move(text);
}

TextPart PartReader::next() {
  if (!input && !lines)
    open();
  TextPart part;
  part.file = static_cast<size_t>(progress.file);
  int64_t before = progress.offset;
  bool isText = input != nullptr;
  isText ? addText(part) : addLines(part);
  progress.bytes += progress.offset - before;
  const TextInput &text = isText ? *input : lines->text();
  part.share = fileBytes > 0
                   ? static_cast<double>(doneBytes + text.fileRead()) /
                         static_cast<double>(fileBytes)
                   : 1.0;
  bool isLast = isText ? part.pieces.back().isLast : part.pieces.empty();
  if (isLast) {
    doneBytes += text.fileBytes();
    input.reset();
    lines.reset();
    ++progress.file;
    progress.offset = progress.lines = 0;
  }
  part.canResume = !rest;
  part.end = progress;
  return part;
}

void PartReader::addText(TextPart &part) {
  TextPlace begin = progress.offset == 0 ? TextPlace::Start : TextPlace::Inside;
  size_t end = findEnd(kPart, [&](size_t bytes) { return fill(bytes); });
  // Only the last part takes all that is read.
  bool isLast = end == buffer.size();
  part.pieces.push_back({{buffer.substr(0, end)}, begin, isLast});
  buffer.erase(0, end);
  progress.offset += static_cast<int64_t>(end);
}

/// Bytes [begin, end) of a document.
static Document partOf(const Document &document, size_t begin, size_t end) {
  Document part{document.text.substr(begin, end - begin), std::nullopt,
                document.isRendered};
  if (!document.counted)
    return part;
  part.counted.emplace();
  for (ByteRange range : *document.counted) {
    ByteRange inside{std::max(range.begin, begin), std::min(range.end, end)};
    if (inside.begin < inside.end)
      part.counted->push_back({inside.begin - begin, inside.end - begin});
  }
  return part;
}

void PartReader::addLines(TextPart &part) {
  for (size_t bytes = 0; bytes < kPart && (rest || readDocument());) {
    std::string_view text = std::string_view(rest->text).substr(taken);
    size_t end = findEnd(rest->counted ? kCountedPart : kPart,
                         [&](size_t n) { return text.substr(0, n); });
    bytes += end + 1;
    TextPlace place = taken == 0 ? TextPlace::Start : TextPlace::Inside;
    bool isLast = end == text.size();
    part.pieces.push_back({partOf(*rest, taken, taken + end), place, isLast});
    taken += end;
    if (isLast)
      rest.reset();
  }
  progress.offset = lines->offset();
  progress.lines = lines->number();
}

bool PartReader::readDocument() {
  taken = 0;
  for (std::string line; lines->next(line);)
    try {
      rest = readRecord(line, options.records);
      return true;
    } catch (const InputError &error) {
      if (!options.skipBadLines)
        throw InputError(fmt::format("'{}': line {}: {}",
                                     files[static_cast<size_t>(progress.file)],
                                     lines->number(), error.what()));
      ++progress.badLines;
    }
  return false;
}

size_t
PartReader::findEnd(size_t least,
                    const std::function<std::string_view(size_t n)> &see) {
  for (size_t reach = least; reach <= kMostPart; reach *= 2) {
    std::string_view seen = see(least + reach);
    if (size_t place = cutter.find(seen, least))
      return place;
    if (seen.size() < least + reach)
      return seen.size();
  }
  throw InputError(fmt::format(
      "'{}': expected a place between words where the text can be cut, got "
      "none in {} bytes from byte {}",
      files[static_cast<size_t>(progress.file)], kMostPart, progress.offset));
}

std::string_view PartReader::fill(size_t bytes) {
  while (buffer.size() < bytes) {
    size_t before = buffer.size();
    buffer.resize(before + kRead);
    size_t got = input->read(buffer.data() + before, kRead);
    buffer.resize(before + got);
    if (got == 0)
      break;
  }
  return std::string_view(buffer).substr(0, bytes);
}

} // namespace rota
