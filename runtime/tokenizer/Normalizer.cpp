// SPDX-License-Identifier: Apache-2.0
#include "runtime/tokenizer/Normalizer.h"
#include "runtime/Error.h"
#include "runtime/tokenizer/text/ByteAlphabet.h"
#include "runtime/tokenizer/text/CharacterMap.h"
#include "runtime/tokenizer/text/Characters.h"
#include "runtime/tokenizer/text/Patterns.h"
#include "runtime/tokenizer/text/Utf8.h"

#include <fmt/format.h>
#include <unicode/bytestream.h>
#include <unicode/normalizer2.h>
#include <unicode/uniset.h>

namespace rota {

/// Characters of Unicode 11, which the tables of the tokenizers package have.
static const icu::UnicodeSet &knownCharacters() {
  static const icu::UnicodeSet set = [] {
    UErrorCode error = U_ZERO_ERROR;
    icu::UnicodeSet set(UNICODE_STRING_SIMPLE("[:age=11.0:]"), error);
    return set.freeze(), set;
  }();
  return set;
}

void normalizeTo(NormalForm form, std::string &text) {
  UErrorCode error = U_ZERO_ERROR;
  const icu::Normalizer2 *normalizer =
      form == NormalForm::C    ? icu::Normalizer2::getNFCInstance(error)
      : form == NormalForm::D  ? icu::Normalizer2::getNFDInstance(error)
      : form == NormalForm::KC ? icu::Normalizer2::getNFKCInstance(error)
                               : icu::Normalizer2::getNFKDInstance(error);
  icu::StringPiece source(text.data(), static_cast<int32_t>(text.size()));
  // A text that is normal for ICU is so for older tables.
  if (U_FAILURE(error) || normalizer->isNormalizedUTF8(source, error))
    return;
  icu::FilteredNormalizer2 known(*normalizer, knownCharacters());
  std::string result;
  icu::StringByteSink<std::string> sink(&result);
  known.normalizeUTF8(0, source, sink, nullptr, error);
  text = std::move(result);
}

namespace {

using Steps = std::vector<NormalizerStep>;

/// Keeps the characters for which `keep` holds.
template <typename Keep> void filter(NormalizedText &text, Keep keep) {
  std::string kept;
  kept.reserve(text.text.size());
  for (size_t at = 0; at < text.text.size();) {
    size_t begin = at;
    if (keep(nextChar(text.text, at)))
      kept.append(text.text, begin, at - begin);
    else if (kept.empty())
      text.isFirst = false;
  }
  text.text = std::move(kept);
}

/// Replaces each character by what `write` appends for it.
template <typename Write> void rewrite(NormalizedText &text, Write write) {
  std::string written;
  written.reserve(text.text.size());
  for (size_t at = 0; at < text.text.size();)
    write(written, nextChar(text.text, at));
  text.text = std::move(written);
}

void strip(NormalizedText &text, bool left, bool right) {
  std::string_view rest = text.text;
  size_t begin = 0, end = rest.size();
  for (size_t next = 0; left && begin < end; begin = next)
    if (!isSpace(nextChar(rest, next)))
      break;
  while (right && end > begin) {
    size_t last = end - 1;
    while (!beginsChar(rest[last]))
      --last;
    size_t next = last;
    if (!isSpace(nextChar(rest, next)))
      break;
    end = last;
  }
  if (begin > 0)
    text.isFirst = false;
  text.text = std::string(rest.substr(begin, end - begin));
}

void replace(NormalizedText &text, Expression::Matcher &matcher,
             const std::string &content) {
  std::vector<Range> matches;
  matcher.find(text.text, matches);
  if (matches.empty())
    return;
  std::string_view source = text.text;
  // A match of one character at the start passes its place on.
  const Range &first = matches.front();
  if (first.begin == 0 && first.end > 0 &&
      (content.empty() || countChars(source.substr(0, first.end)) > 1))
    text.isFirst = false;
  text.text = replaceRanges(source, matches, content);
}

/// The cleaning of BERT: controls go, spaces become U+0020.
void cleanText(NormalizedText &text) {
  constexpr char32_t kUnknown = 0xFFFD;
  filter(text, [](char32_t c) {
    return c == '\t' || c == '\n' || c == '\r' ||
           !(c == 0 || c == kUnknown || isControl(c));
  });
  rewrite(text, [](std::string &out, char32_t c) {
    appendChar(out, isSpace(c) ? U' ' : c);
  });
}

void separateIdeographs(NormalizedText &text) {
  rewrite(text, [](std::string &out, char32_t c) {
    if (!isIdeograph(c))
      return appendChar(out, c);
    out += ' ';
    appendChar(out, c);
    out += ' ';
  });
}

void lower(NormalizedText &text) {
  rewrite(text, [](std::string &out, char32_t c) { appendLower(out, c); });
}

/// The rules nmt of sentencepiece.
void cleanForTranslation(NormalizedText &text) {
  filter(text, [](char32_t c) {
    return !((c >= 1 && c <= 8) || c == 0xB || (c >= 0xE && c <= 0x1F) ||
             c == 0x7F || c == 0x8F || c == 0x9F);
  });
  rewrite(text, [](std::string &out, char32_t c) {
    bool isSpace = c == 9 || c == 0xA || c == 0xC || c == 0xD || c == 0x1680 ||
                   (c >= 0x200B && c <= 0x200F) || c == 0x2028 || c == 0x2029 ||
                   c == 0x2581 || c == 0xFEFF || c == 0xFFFD;
    appendChar(out, isSpace ? U' ' : c);
  });
}

void addBert(const JsonNode &node, Steps &steps) {
  bool isLower = node.boolean("lowercase", true);
  if (node.boolean("clean_text", true))
    steps.push_back(cleanText);
  if (node.boolean("handle_chinese_chars", true))
    steps.push_back(separateIdeographs);
  if (node.boolean("strip_accents", isLower))
    steps.push_back([](NormalizedText &text) {
      normalizeTo(NormalForm::D, text.text);
      filter(text, [](char32_t c) { return !isNonspacingMark(c); });
    });
  if (isLower)
    steps.push_back(lower);
}

NormalizerStep readForm(NormalForm form) {
  return [form](NormalizedText &text) { normalizeTo(form, text.text); };
}

void addSteps(const JsonNode &node, Steps &steps);

/// The step of one normalizer; nothing for a type that is not known.
NormalizerStep readStep(const JsonNode &node, const std::string &type) {
  if (type == "NFC")
    return readForm(NormalForm::C);
  if (type == "NFD")
    return readForm(NormalForm::D);
  if (type == "NFKC")
    return readForm(NormalForm::KC);
  if (type == "NFKD")
    return readForm(NormalForm::KD);
  if (type == "Lowercase")
    return lower;
  if (type == "Nmt")
    return cleanForTranslation;
  if (type == "StripAccents")
    return [](NormalizedText &text) {
      filter(text, [](char32_t c) { return !isCombiningMark(c); });
    };
  if (type == "Strip")
    return [left = node.at("strip_left").boolean(),
            right = node.at("strip_right").boolean()](NormalizedText &text) {
      strip(text, left, right);
    };
  if (type == "Replace")
    return [matcher = readPattern(node),
            content = node.at("content").text()](NormalizedText &text) mutable {
      replace(text, matcher, content);
    };
  if (type == "Prepend")
    return [prefix = node.at("prepend").text()](NormalizedText &text) {
      if (!text.text.empty() && !text.continues)
        text.text.insert(0, prefix);
    };
  if (type == "Precompiled")
    return [map = CharacterMap(node.at("precompiled_charsmap"))](
               NormalizedText &text) { map.apply(text.text); };
  if (type == "ByteLevel")
    return [](NormalizedText &text) { text.text = toAlphabet(text.text); };
  return nullptr;
}

void addSteps(const JsonNode &node, Steps &steps) {
  const std::string &type = node.at("type").text();
  if (type == "Sequence")
    return node.at("normalizers").forElements([&](const JsonNode &each) {
      addSteps(each, steps);
    });
  if (type == "BertNormalizer")
    return addBert(node, steps);
  NormalizerStep step = readStep(node, type);
  if (!step)
    node.refuse(fmt::format("the normalizer '{}' is not supported", type));
  steps.push_back(std::move(step));
}

} // namespace

std::vector<NormalizerStep> readNormalizer(const JsonNode &node) {
  Steps steps;
  addSteps(node, steps);
  return steps;
}

} // namespace rota
