// SPDX-License-Identifier: Apache-2.0
//
// A row of a table of options: name, type, default, bounds and help, for the
// command line, RUN.json and --help alike. The tables are in
// runtime/train/TrainOptions.cpp and tools/rota/options/OptionTable.cpp.
#ifndef ROTA_RUNTIME_OPTIONS_OPTION_H
#define ROTA_RUNTIME_OPTIONS_OPTION_H

#include "runtime/text/Names.h"

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

namespace rota {

/// The commands of the tool and of the trainer that take options; a mask in
/// each row. A trainer has Train, Probe, Eval and Generate.
enum class Command : unsigned {
  Train = 1,
  Compile = 2,
  Plan = 4,
  Probe = 8,
  Schedule = 16,
  Checkpoint = 32,
  Convert = 64,
  Eval = 128,
  Report = 256,
  Machine = 512,
  Tokenize = 1024,
  Detokenize = 2048,
  Generate = 4096
};

constexpr unsigned operator|(Command a, Command b) {
  return unsigned(a) | unsigned(b);
}
constexpr unsigned operator|(unsigned a, Command b) { return a | unsigned(b); }

/// A variable of an enum, or of an enum that may be left open, by its names.
class Choice {
public:
  template <typename Enum>
  Choice(Enum &variable)
      : names(std::begin(Names<Enum>::list), std::end(Names<Enum>::list)),
        set([&](int value) { variable = static_cast<Enum>(value); }),
        text([&] { return std::string(nameOf(variable)); }) {}
  template <typename Enum>
  Choice(std::optional<Enum> &variable)
      : names(std::begin(Names<Enum>::list), std::end(Names<Enum>::list)),
        set([&](int value) { variable = static_cast<Enum>(value); }),
        text([&] { return variable ? nameOf(*variable) : std::string(); }) {}

  std::vector<std::string> names;
  std::function<void(int value)> set;
  std::function<std::string()> text; // empty: left open
};

/// A list whose variable is one text, with commas between the elements.
struct JoinedList {
  std::string *text;
};

/// A list of integers, in a container of them.
class NumberList {
public:
  template <typename Container>
  NumberList(Container &variable)
      : set([&](const std::vector<int64_t> &numbers) {
          variable.assign(numbers.begin(), numbers.end());
        }),
        numbers([&] {
          return std::vector<int64_t>(variable.begin(), variable.end());
        }) {}

  std::function<void(const std::vector<int64_t> &numbers)> set;
  std::function<std::vector<int64_t>()> numbers;
};

/// The variable that an option sets. Its value before is the default.
using OptionVariable =
    std::variant<std::string *, int64_t *, double *, bool *,
                 std::optional<int64_t> *, std::optional<double> *,
                 std::vector<std::string> *, JoinedList, NumberList, Choice>;

struct Option {
  std::string name;  // the long flag without dashes, and the key in RUN.json
  std::string group; // heading in --help
  std::string value; // word for the value in --help; empty for a bool
  std::string help;
  unsigned commands; // mask of Command
  OptionVariable variable;
  double minimum = 0.0; // least number
  double maximum = std::numeric_limits<double>::infinity();
  std::vector<std::string> choices = {}; // allowed items of a list; empty: any
  char letter = 0;                       // the short flag
  unsigned requiredBy = 0;               // mask of Command
  // Arguments after the flag, whatever they look like. Several are a list,
  // whose elements may have commas.
  int words = 1;

  bool isFlag() const { return std::holds_alternative<bool *>(variable); }
  bool isList() const {
    return std::holds_alternative<std::vector<std::string> *>(variable) ||
           std::holds_alternative<JoinedList>(variable) ||
           std::holds_alternative<NumberList>(variable);
  }
};

/// The largest integer that is exact in a double, 2^53.
inline constexpr double kMaxCount = 9007199254740992.0;

/// Sets the option's variable from texts, one unless it is a list. Returns an
/// empty string, or what was expected and what was there.
std::string assignText(const Option &option,
                       const std::vector<std::string> &texts);

/// The names that the option takes; none where it takes others.
const std::vector<std::string> &choicesOf(const Option &option);
/// The rule for values: "an integer from 1 to 8", "true or false".
std::string ruleOf(const Option &option);
/// "expected RULE, got GOT".
std::string expected(const std::string &rule, const std::string &got);

/// The value as text, one for each element of a list; none where it is left
/// open or empty.
std::vector<std::string> valueTexts(const Option &option);

/// The option of that name that one of `commands` takes; null when there is
/// none.
const Option *findOption(const std::vector<Option> &table,
                         std::string_view name, unsigned commands);
/// The options that `command` requires and `given` lacks.
std::vector<std::string>
missingOptions(const std::vector<Option> &table, Command command,
               const std::set<std::string, std::less<>> &given);
/// "'--data' is missing", "'--data' and '--steps' are missing".
std::string missingText(const std::vector<std::string> &options);

/// "; did you mean 'X'?" for the option that `name` means among those of
/// `commands`, or nothing when none is near: another name of it (`--chunks`),
/// its initials (`--lr`), its beginning, or a misspelling. `prefix` stands
/// before the name.
std::string suggestion(const std::vector<Option> &table, std::string_view name,
                       unsigned commands, const std::string &prefix);
/// The suggestion for an option of other commands that has another name here.
std::string otherName(const std::vector<Option> &table, std::string_view name,
                      unsigned commands, const std::string &prefix);
/// "; did you mean 'X'?" for the nearest of `names` to a misspelled one.
std::string nearestOf(const std::vector<std::string> &names,
                      std::string_view name);

} // namespace rota

#endif // ROTA_RUNTIME_OPTIONS_OPTION_H
