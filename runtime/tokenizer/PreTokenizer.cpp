// SPDX-License-Identifier: Apache-2.0
#include "runtime/tokenizer/PreTokenizer.h"
#include "runtime/Error.h"
#include "runtime/tokenizer/SplitPieces.h"
#include "runtime/tokenizer/text/ByteAlphabet.h"
#include "runtime/tokenizer/text/Characters.h"
#include "runtime/tokenizer/text/Patterns.h"
#include "runtime/tokenizer/text/Utf8.h"

#include <fmt/format.h>

namespace rota {

void writeInAlphabet(Pieces &pieces) {
  for (TextPiece &piece : pieces.list)
    piece.text = pieces.keep(toAlphabet(piece.text));
}

namespace {

/// The expression of GPT-2.
/// https://github.com/openai/gpt-2/blob/master/src/encoder.py
constexpr const char *kGpt2 =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

PreTokenizerStep splitBy(FindMatches find, SplitRule rule) {
  return [find = std::move(find), rule](Pieces &pieces) {
    splitPieces(pieces, find, rule);
  };
}

PreTokenizerStep splitAt(std::function<bool(char32_t)> isMatch,
                         SplitBehavior behavior) {
  return splitBy(matchCharacters(std::move(isMatch)), {behavior});
}

PreTokenizerStep splitByPattern(Expression::Matcher matcher, SplitRule rule) {
  return splitBy(
      [matcher = std::move(matcher)](std::string_view text,
                                     std::vector<Range> &matches) mutable {
        matcher.find(text, matches);
      },
      rule);
}

/// Puts the prefix before each piece that does not begin with it and that is
/// not in the middle of a text. `firstAlone`: before the first of the document.
void addPrefix(Pieces &pieces, std::string_view prefix, bool firstAlone) {
  for (TextPiece &piece : pieces.list)
    if (!piece.text.starts_with(prefix) && !piece.continues &&
        (!firstAlone || piece.isFirst))
      piece.text = pieces.keep(std::string(prefix).append(piece.text));
}

SplitBehavior readBehavior(const JsonNode &node) {
  std::optional<SplitBehavior> behavior = behaviorOf(node.text());
  if (!behavior)
    node.fail("Removed, Isolated, MergedWithPrevious, MergedWithNext or "
              "Contiguous");
  return *behavior;
}

void addByteLevel(const JsonNode &node, PreTokenizer &out) {
  if (node.at("add_prefix_space").boolean())
    out.steps.push_back([](Pieces &pieces) { addPrefix(pieces, " ", false); });
  if (node.boolean("use_regex", true))
    out.steps.push_back(
        splitByPattern(Expression::Matcher(Expression::regular(kGpt2)),
                       {SplitBehavior::Isolated}));
  out.endsWithBytes = true;
}

void addMetaspace(const JsonNode &node, PreTokenizer &out) {
  std::string mark;
  appendChar(mark, node.at("replacement").character());
  std::string scheme = node.text("prepend_scheme", "always");
  if (scheme != "always" && scheme != "first" && scheme != "never")
    node.at("prepend_scheme").fail("always, first or never");
  if (!node.boolean("add_prefix_space", true)) {
    if (node.find("prepend_scheme") && scheme != "never")
      node.at("add_prefix_space")
          .refuse("expected no other prepend_scheme "
                  "than never beside false");
    scheme = "never";
  }
  out.steps.push_back([mark](Pieces &pieces) {
    for (TextPiece &piece : pieces.list) {
      if (piece.text.find(' ') == std::string_view::npos)
        continue;
      std::string text;
      for (char c : piece.text)
        c == ' ' ? text += mark : text += c;
      piece.text = pieces.keep(std::move(text));
    }
  });
  if (scheme != "never")
    out.steps.push_back([mark, first = scheme == "first"](Pieces &pieces) {
      addPrefix(pieces, mark, first);
    });
  if (node.boolean("split", true))
    out.steps.push_back(
        splitByPattern(Expression::Matcher(Expression::literal(mark)),
                       {SplitBehavior::MergedWithNext}));
}

/// Matches of \w+|[^\w\s]+.
void findWords(std::string_view text, std::vector<Range> &matches) {
  enum Kind { Space, Word, Other } last = Space;
  for (size_t at = 0; at < text.size();) {
    size_t begin = at;
    char32_t c = nextChar(text, at);
    Kind kind = isWord(c) ? Word : isSpace(c) ? Space : Other;
    if (kind != Space && kind == last)
      matches.back().end = at;
    else if (kind != Space)
      matches.push_back({begin, at});
    last = kind;
  }
}

/// A match for each run of characters of one script. The pre-tokenizer of the
/// tokenizers package leaves out what stands before the first script.
void findScripts(std::string_view text, std::vector<Range> &matches) {
  std::optional<int> last;
  for (size_t at = 0; at < text.size();) {
    size_t begin = at;
    int script = scriptOf(nextChar(text, at));
    if (script != kAnyScript && (!last || *last != script))
      matches.push_back({begin, at});
    else if (!matches.empty())
      matches.back().end = at;
    if (script != kAnyScript)
      last = script;
  }
}

void findLengths(size_t length, std::string_view text,
                 std::vector<Range> &matches) {
  size_t count = 0;
  for (size_t at = 0; at < text.size(); ++count) {
    size_t begin = at;
    at += static_cast<size_t>(charBytes(text[at]));
    if (count % length == 0)
      matches.push_back({begin, at});
    else
      matches.back().end = at;
  }
}

/// The steps of one pre-tokenizer; false for a type that is not known.
bool addType(const JsonNode &node, const std::string &type, PreTokenizer &out) {
  std::vector<PreTokenizerStep> &steps = out.steps;
  constexpr SplitRule words{SplitBehavior::Removed, /*invert=*/true};
  if (type == "ByteLevel") {
    addByteLevel(node, out);
  } else if (type == "Metaspace") {
    addMetaspace(node, out);
  } else if (type == "Split") {
    steps.push_back(
        splitByPattern(readPattern(node), {readBehavior(node.at("behavior")),
                                           node.at("invert").boolean()}));
  } else if (type == "Digits") {
    steps.push_back(splitAt(isNumeric, node.at("individual_digits").boolean()
                                           ? SplitBehavior::Isolated
                                           : SplitBehavior::Contiguous));
  } else if (type == "Punctuation") {
    auto behavior = node.find("behavior");
    steps.push_back(splitAt(isPunctuation, behavior ? readBehavior(*behavior)
                                                    : SplitBehavior::Isolated));
  } else if (type == "BertPreTokenizer") {
    steps.push_back(splitAt(isSpace, SplitBehavior::Removed));
    steps.push_back(splitAt(isPunctuation, SplitBehavior::Isolated));
  } else if (type == "Whitespace") {
    steps.push_back(splitBy(findWords, words));
  } else if (type == "WhitespaceSplit") {
    steps.push_back(splitAt(isSpace, SplitBehavior::Removed));
  } else if (type == "CharDelimiterSplit" || type == "Delimiter") {
    steps.push_back(splitAt([mark = node.at("delimiter").character()](
                                char32_t c) { return c == mark; },
                            SplitBehavior::Removed));
  } else if (type == "UnicodeScripts") {
    steps.push_back(splitBy(findScripts, words));
  } else if (type == "FixedLength") {
    auto length = node.find("length");
    size_t size = length ? size_t(length->integer(1, 1 << 20)) : 5;
    steps.push_back(splitBy(
        [size](std::string_view text, std::vector<Range> &matches) {
          findLengths(size, text, matches);
        },
        words));
  } else {
    return false;
  }
  return true;
}

void add(const JsonNode &node, PreTokenizer &out) {
  const std::string &type = node.at("type").text();
  if (type == "Sequence")
    return node.at("pretokenizers").forElements([&](const JsonNode &each) {
      add(each, out);
    });
  if (out.endsWithBytes)
    out.steps.push_back(writeInAlphabet);
  out.endsWithBytes = false;
  if (!addType(node, type, out))
    node.refuse(fmt::format("the pre-tokenizer '{}' is not supported", type));
}

} // namespace

PreTokenizer readPreTokenizer(const JsonNode &node) {
  PreTokenizer out;
  add(node, out);
  return out;
}

} // namespace rota
