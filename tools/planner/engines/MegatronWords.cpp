// SPDX-License-Identifier: Apache-2.0
//
// A command line of Megatron-LM as its flags.
#include "tools/planner/engines/Megatron.h"

#include <algorithm>
#include <cctype>

namespace rota::engines::megatron {

namespace {

using Words = std::vector<std::string>;

/// Whether a backslash before `c` makes it a plain character.
bool isEscapable(char c, char quote) {
  return !quote || (quote == '"' &&
                    std::string_view("\"\\$`").find(c) != std::string::npos);
}

/// The words of a command line as a shell divides them; comments between lines
/// are left out. Nothing where a quote has no end.
std::optional<Words> splitWords(const std::string &text) {
  Words words;
  bool isOpen = false; // a word has begun
  char quote = 0;
  auto open = [&]() -> std::string & {
    if (!isOpen)
      words.emplace_back();
    isOpen = true;
    return words.back();
  };
  for (size_t at = 0; at < text.size(); ++at) {
    char c = text[at], after = at + 1 < text.size() ? text[at + 1] : 0;
    bool isSpace = std::isspace(static_cast<unsigned char>(c));
    bool isContinued = c == '\\' && (after == '\n' || after == '\r');
    if (!quote && (isSpace || isContinued)) {
      isOpen = false;
    } else if (c == '\\' && after && isEscapable(after, quote)) {
      open() += after;
      ++at;
    } else if (!quote && !isOpen && c == '#') {
      at = std::min(text.find('\n', at), text.size());
    } else if (c == quote) {
      quote = 0;
    } else if (!quote && (c == '"' || c == '\'')) {
      quote = c;
      open();
    } else {
      open() += c;
    }
  }
  return quote ? std::nullopt : std::optional(words);
}

/// The number of ranks that the launcher's words say: nodes times processes of
/// one; 0 where they do not.
int64_t launchedRanks(const Words &words) {
  int64_t ranks = 1;
  bool isSaid = false;
  for (size_t i = 0; i < words.size(); ++i) {
    std::string name = words[i].substr(0, words[i].find('='));
    std::ranges::replace(name, '_', '-');
    if (name != "--nproc-per-node" && name != "--nnodes")
      continue;
    std::string value = name.size() < words[i].size()
                            ? words[i].substr(name.size() + 1)
                        : i + 1 < words.size() ? words[i + 1]
                                               : "";
    char *end = nullptr;
    long long count = std::strtoll(value.c_str(), &end, 10);
    if (value.empty() || *end || count < 1 || count > 1 << 24)
      return 0;
    ranks *= count;
    isSaid |= name == "--nproc-per-node";
  }
  return isSaid ? ranks : 0;
}

/// Reads flags one after the other.
class FlagReader {
public:
  FlagReader(const Words &words, size_t first, bool hasModel, Flags &flags,
             EngineImport &import)
      : words(words), at(first), hasModel(hasModel), flags(flags),
        import(import) {}

  /// An empty string, or the first mistake.
  std::string readAll() {
    std::string error;
    while (at < words.size() && error.empty())
      error = readOne();
    return error;
  }

private:
  std::string here(const std::string &message) const {
    return "word " + std::to_string(number) + ": " + message;
  }
  bool isFlag(size_t position) const {
    return words[position].starts_with("--");
  }

  std::string readOne() {
    number = at + 1;
    std::string flag = words[at++];
    Words values;
    if (size_t equals = flag.find('='); equals != flag.npos) {
      values.push_back(flag.substr(equals + 1));
      flag.resize(equals);
    }
    if (!flag.starts_with("--"))
      return here("expected a flag, got '" + flag + "'");
    std::optional<Arity> arity = arityOf(flag);
    if (!arity)
      return here("unknown flag '" + flag + "'" + nearestFlag(flag));
    takeValues(*arity, values);
    if (std::string wrong = checkCount(*arity, values); !wrong.empty())
      return here("'" + flag + "': " + wrong);
    return set(flag, *arity, values);
  }

  void takeValues(Arity arity, Words &values) {
    size_t most = arity == Arity::None    ? 0
                  : arity == Arity::One   ? 1
                  : arity == Arity::Three ? 3
                                          : words.size();
    while (values.size() < most && at < words.size() && !isFlag(at))
      values.push_back(words[at++]);
  }

  static std::string checkCount(Arity arity, const Words &values) {
    if (arity == Arity::None && !values.empty())
      return "expected no value, got '" + values.front() + "'";
    if (arity == Arity::Three && values.size() != 3)
      return "expected three values, got " + std::to_string(values.size());
    if (arity == Arity::One && values.empty())
      return "expected a value, got none";
    return "";
  }

  std::string set(const std::string &flag, Arity arity, const Words &values) {
    std::string value = arity == Arity::None ? "true" : "";
    for (const std::string &each : values)
      value += (value.empty() ? "" : " ") + each;
    if (const char *reason = whyRefused(flag, value, hasModel))
      return here("'" + flag + "': " + reason +
                  "; Rota's plans cannot follow it");
    if (const char *reason = otherwiseIn(flag)) {
      import.remarks.push_back({flag + " " + value, reason});
      return "";
    }
    auto row = std::ranges::find_if(
        table(), [&](const FlagRow &row) { return row.name == flag; });
    if (row == table().end()) {
      import.ignored.push_back(flag + " (word " + std::to_string(number) + ")");
      return "";
    }
    auto [before, isFirst] = flags.words.try_emplace(flag, number);
    if (!isFirst)
      import.remarks.push_back(
          {flag + " (word " + std::to_string(before->second) + ")",
           "word " + std::to_string(number) + " says it again, and counts"});
    before->second = number;
    std::string wrong = row->assign(flags, value);
    return wrong.empty() ? "" : here("'" + flag + "': " + wrong);
  }

  const Words &words;
  size_t at, number = 0;
  bool hasModel;
  Flags &flags;
  EngineImport &import;
};

} // namespace

std::string Flags::messageAt(std::string_view flag,
                             const std::string &message) const {
  auto found = words.find(flag);
  return (found == words.end()
              ? std::string()
              : "word " + std::to_string(found->second) + ": ") +
         "'" + std::string(flag) + "': " + message;
}

bool readFlags(const ImportRequest &request, Flags &flags, int64_t &launched,
               EngineImport &import, std::string &error) {
  std::optional<Words> words = splitWords(request.text);
  if (!words) {
    error = "expected an end of the quote";
    return false;
  }
  // The launcher's words end with the script.
  auto script = std::ranges::find_if(
      *words, [](const std::string &word) { return word.ends_with(".py"); });
  size_t first = script == words->end() ? 0 : script - words->begin() + 1;
  launched = launchedRanks({words->begin(), words->begin() + long(first)});
  error = FlagReader(*words, first, request.hasModel, flags, import).readAll();
  return error.empty();
}

} // namespace rota::engines::megatron
