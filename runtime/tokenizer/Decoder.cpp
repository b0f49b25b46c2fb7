// SPDX-License-Identifier: Apache-2.0
#include "runtime/tokenizer/Decoder.h"
#include "runtime/tokenizer/text/ByteAlphabet.h"
#include "runtime/tokenizer/text/Patterns.h"
#include "runtime/tokenizer/text/Utf8.h"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>

namespace rota {

namespace {

using Texts = std::vector<std::string>;

std::string replaceAll(const std::string &text, std::string_view from,
                       std::string_view to) {
  if (from.empty())
    return text;
  std::string replaced;
  size_t begin = 0;
  for (size_t at; (at = text.find(from, begin)) != text.npos;
       begin = at + from.size()) {
    replaced.append(text, begin, at - begin);
    replaced += to;
  }
  return replaced.append(text, begin);
}

std::string joined(const Texts &texts) {
  std::string all;
  for (const std::string &text : texts)
    all += text;
  return all;
}

void fromBytes(Texts &texts) {
  std::string bytes;
  for (const std::string &text : texts)
    bytes += fromAlphabet(text).value_or(text);
  texts = {repairUtf8(bytes)};
}

/// The byte of "<0x0A>".
std::optional<char> byteOf(std::string_view text) {
  if (text.size() != 6 || !text.starts_with("<0x") || !text.ends_with('>'))
    return std::nullopt;
  if (text[3] == '+') // as Rust reads a number
    text.remove_prefix(1);
  uint8_t byte = 0;
  std::string_view digits = text.substr(3, text.size() - 4);
  auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), byte, 16);
  if (error != std::errc() || end != digits.data() + digits.size())
    return std::nullopt;
  return static_cast<char>(byte);
}

/// Texts that name a byte become these bytes; U+FFFD each where a run of them
/// is not UTF-8.
void joinByteTokens(Texts &texts) {
  Texts out;
  std::string bytes;
  auto flush = [&] {
    bool isValid = validBytes(bytes) == bytes.size();
    if (isValid && !bytes.empty())
      out.push_back(bytes);
    for (size_t n = 0; !isValid && n < bytes.size(); ++n)
      out.emplace_back(kReplacement);
    bytes.clear();
  };
  for (std::string &text : texts)
    if (std::optional<char> byte = byteOf(text)) {
      bytes += *byte;
    } else {
      flush();
      out.push_back(std::move(text));
    }
  flush();
  texts = std::move(out);
}

/// Takes at most `start` and `stop` of the character off the ends.
void strip(Texts &texts, std::string_view c, int64_t start, int64_t stop) {
  for (std::string &text : texts) {
    std::string_view rest = text;
    for (int64_t n = 0; n < start && rest.starts_with(c); ++n)
      rest.remove_prefix(c.size());
    for (int64_t n = 0; n < stop && rest.ends_with(c); ++n)
      rest.remove_suffix(c.size());
    text = std::string(rest);
  }
}

/// The spaces before English punctuation go.
std::string cleanUp(std::string text) {
  constexpr std::pair<std::string_view, std::string_view> rules[] = {
      {" .", "."},   {" ?", "?"},     {" !", "!"},    {" ,", ","},
      {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},  {" do not", " don't"},
      {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  for (auto [from, to] : rules)
    text = replaceAll(text, from, to);
  return text;
}

void joinWordPieces(Texts &texts, const std::string &prefix, bool cleans) {
  for (size_t n = 0; n < texts.size(); ++n) {
    if (n > 0)
      texts[n] = texts[n].starts_with(prefix) ? texts[n].substr(prefix.size())
                                              : " " + texts[n];
    if (cleans)
      texts[n] = cleanUp(std::move(texts[n]));
  }
}

DecoderStep readMetaspace(const JsonNode &node) {
  std::string mark;
  appendChar(mark, node.at("replacement").character());
  bool hasPrefix = node.text("prepend_scheme", "always") != "never" &&
                   node.boolean("add_prefix_space", true);
  return [mark, hasPrefix](Texts &texts) {
    for (size_t n = 0; n < texts.size(); ++n)
      texts[n] = replaceAll(texts[n], mark, n == 0 && hasPrefix ? "" : " ");
  };
}

DecoderStep readCtc(const JsonNode &node) {
  return [pad = node.at("pad_token").text(),
          delimiter = node.at("word_delimiter_token").text(),
          cleans = node.at("cleanup").boolean()](Texts &texts) {
    texts.erase(std::unique(texts.begin(), texts.end()), texts.end());
    for (std::string &text : texts) {
      text = replaceAll(text, pad, "");
      if (cleans)
        text = replaceAll(cleanUp(std::move(text)), delimiter, " ");
    }
  };
}

DecoderStep readReplace(const JsonNode &node) {
  return [matcher = readPattern(node),
          content = node.at("content").text()](Texts &texts) mutable {
    std::vector<Range> matches;
    for (std::string &text : texts) {
      matches.clear();
      matcher.find(text, matches);
      text = replaceRanges(text, matches, content);
    }
  };
}

DecoderStep readStrip(const JsonNode &node) {
  constexpr int64_t kMost = 1 << 30;
  std::string c;
  appendChar(c, node.at("content").character());
  return [c, start = node.at("start").integer(0, kMost),
          stop = node.at("stop").integer(0, kMost)](Texts &texts) {
    strip(texts, c, start, stop);
  };
}

DecoderStep readStep(const JsonNode &node, const std::string &type) {
  if (type == "ByteLevel")
    return fromBytes;
  if (type == "ByteFallback")
    return joinByteTokens;
  if (type == "Fuse")
    return [](Texts &texts) { texts = {joined(texts)}; };
  if (type == "Metaspace")
    return readMetaspace(node);
  if (type == "Replace")
    return readReplace(node);
  if (type == "Strip")
    return readStrip(node);
  if (type == "CTC")
    return readCtc(node);
  if (type == "WordPiece")
    return [prefix = node.at("prefix").text(),
            cleans = node.at("cleanup").boolean()](Texts &texts) {
      joinWordPieces(texts, prefix, cleans);
    };
  if (type == "BPEDecoder")
    return [suffix = node.at("suffix").text()](Texts &texts) {
      for (size_t n = 0; n < texts.size(); ++n)
        texts[n] =
            replaceAll(texts[n], suffix, n + 1 < texts.size() ? " " : "");
    };
  node.refuse(fmt::format("the decoder '{}' is not supported", type));
}

void addSteps(const JsonNode &node, std::vector<DecoderStep> &steps) {
  const std::string &type = node.at("type").text();
  if (type != "Sequence")
    return steps.push_back(readStep(node, type));
  node.at("decoders").forElements([&](const JsonNode &each) {
    addSteps(each, steps);
  });
}

} // namespace

std::vector<DecoderStep> readDecoder(const JsonNode &node) {
  std::vector<DecoderStep> steps;
  addSteps(node, steps);
  return steps;
}

} // namespace rota
