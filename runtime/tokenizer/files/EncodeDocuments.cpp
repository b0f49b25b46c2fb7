// SPDX-License-Identifier: Apache-2.0
#include "runtime/tokenizer/files/EncodeDocuments.h"
#include "runtime/tokenizer/text/Utf8.h"

#include <algorithm>
#include <utility>

namespace rota {

/// Notes whether the tokens since the last call count.
static void mark(TextPart &part, size_t from, bool counts) {
  if (!counts && part.counts.empty())
    part.counts.assign(from, '\1');
  if (!counts || !part.counts.empty())
    part.counts.resize(part.tokens.size(), counts ? '\1' : '\0');
}

void DocumentEncoder::encode(TextPart &part) {
  for (DocumentPiece &piece : part.pieces)
    add(part, piece);
  part.pieces = {};
}

void DocumentEncoder::add(TextPart &part, DocumentPiece &piece) {
  Document &document = piece.document;
  auto addAll = [&](const std::vector<int32_t> &tokens, bool counts) {
    size_t from = part.tokens.size();
    part.tokens.insert(part.tokens.end(), tokens.begin(), tokens.end());
    mark(part, from, counts);
  };
  if (piece.place == TextPlace::Start && !document.isRendered)
    addAll(frame.before, !document.counted);
  if (document.counted) {
    addCounted(part, document, piece.place);
  } else {
    std::string &text = document.text;
    if (validBytes(text) != text.size())
      text = repairUtf8(text);
    size_t from = part.tokens.size();
    encoder->encode(text, piece.place, part.tokens);
    mark(part, from, true);
  }
  if (piece.isLast && !document.isRendered)
    addAll(frame.after, true);
  document.text = std::string();
}

/// For each place of a text that begins at `start`, the number of its tokens
/// before it. A token that the place is inside of is not one of them.
std::vector<size_t>
DocumentEncoder::tokensBefore(const std::string &text, TextPlace start,
                              const std::vector<size_t> &places,
                              const std::vector<int32_t> &whole) {
  std::vector<size_t> counts;
  std::vector<int32_t> parts;
  TextPlace place = start;
  size_t begin = 0;
  auto encodeTo = [&](size_t end) {
    if (begin == end)
      return;
    encoder->encode(std::string_view(text).substr(begin, end - begin),
                    std::exchange(place, TextPlace::Inside), parts);
    begin = end;
  };
  for (size_t end : places) {
    encodeTo(end);
    counts.push_back(parts.size());
  }
  encodeTo(text.size());
  if (parts == whole) // most often
    return counts;
  for (size_t n = 0; n < places.size(); ++n) {
    std::vector<int32_t> first;
    encoder->encode(std::string_view(text).substr(0, places[n]), start, first);
    auto differ = std::ranges::mismatch(first, whole).in1;
    counts[n] = static_cast<size_t>(differ - first.begin());
    if (n > 0)
      counts[n] = std::max(counts[n], counts[n - 1]);
  }
  return counts;
}

void DocumentEncoder::addCounted(TextPart &part, const Document &document,
                                 TextPlace place) {
  std::vector<int32_t> whole;
  encoder->encode(document.text, place, whole);
  std::vector<size_t> places;
  for (ByteRange range : *document.counted)
    places.insert(places.end(), {range.begin, range.end});
  std::vector<size_t> counts =
      tokensBefore(document.text, place, places, whole);
  counts.push_back(whole.size());
  size_t begin = 0;
  for (size_t n = 0; n < counts.size(); ++n) {
    size_t from = part.tokens.size();
    auto at = [&](size_t i) { return whole.begin() + static_cast<long>(i); };
    part.tokens.insert(part.tokens.end(), at(begin), at(counts[n]));
    mark(part, from, n % 2 == 1);
    begin = counts[n];
  }
}

} // namespace rota
