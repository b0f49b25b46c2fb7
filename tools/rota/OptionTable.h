// SPDX-License-Identifier: Apache-2.0
//
// The table of options, and assignment of values to them by their rules.
#ifndef ROTA_TOOLS_ROTA_OPTIONTABLE_H
#define ROTA_TOOLS_ROTA_OPTIONTABLE_H

#include "tools/rota/Options.h"

#include <nlohmann/json.hpp>

#include <limits>
#include <variant>

namespace rota {

using OptionMember =
    std::variant<std::string RunOptions::*, int64_t RunOptions::*,
                 double RunOptions::*, bool RunOptions::*,
                 std::vector<std::string> RunOptions::*>;

struct OptionSpec {
  std::string name;  // the long flag without dashes, and the file's key
  std::string group; // heading in --help
  std::string value; // what stands for the value in --help; empty for a bool
  std::string help;
  unsigned verbs;       // mask of Verb
  unsigned trainer = 0; // mask of the verbs whose trainer takes it too
  OptionMember member;
  double minimum = 0.0; // of a number
  double maximum = std::numeric_limits<double>::infinity();
  std::vector<std::string> choices = {}; // of a string; empty: any
  char letter = 0;                       // the short flag
};

const std::vector<OptionSpec> &optionTable();

/// The option of that name; null when there is none.
const OptionSpec *findOption(llvm::StringRef name);
/// "; did you mean 'X'?" for the option nearest to `name` among those of
/// `verbs`, or nothing when none is near. `prefix` stands before the name.
std::string suggestion(llvm::StringRef name, unsigned verbs,
                       llvm::StringRef prefix);

/// Sets the option's member from a flag's texts or from a value of the file.
/// Returns an empty string, or what was expected and what was there.
std::string assignText(const OptionSpec &option,
                       const std::vector<std::string> &texts,
                       RunOptions &options);
std::string assignJson(const OptionSpec &option, const nlohmann::json &value,
                       RunOptions &options);

/// The member's value as text, one per element of a list.
std::vector<std::string> valueTexts(const OptionSpec &option,
                                    const RunOptions &options);

} // namespace rota

#endif // ROTA_TOOLS_ROTA_OPTIONTABLE_H
