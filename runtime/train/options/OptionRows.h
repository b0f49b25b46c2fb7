// SPDX-License-Identifier: Apache-2.0
//
// Rows of the trainer's table of options. A subject has a file of its own,
// <Subject>Options, with the structure of its variables, their rows and the
// check of their values; Options.h puts the subjects together.
#ifndef ROTA_RUNTIME_TRAIN_OPTIONS_OPTIONROWS_H
#define ROTA_RUNTIME_TRAIN_OPTIONS_OPTIONROWS_H

#include "runtime/options/Option.h"

#include <string>
#include <vector>

namespace rota {

using OptionRows = std::vector<Option>;

/// The commands that take an option.
namespace commands {
inline constexpr unsigned train = unsigned(Command::Train);
inline constexpr unsigned probe = unsigned(Command::Probe);
inline constexpr unsigned eval = unsigned(Command::Eval);
inline constexpr unsigned generate = unsigned(Command::Generate);
inline constexpr unsigned runs = train | probe;
inline constexpr unsigned anyRun = runs | eval | generate;
inline constexpr unsigned models = anyRun | Command::Compile | Command::Plan;
} // namespace commands

/// An option whose value does not fit those of others.
struct OptionMistake {
  std::string option; // the name; empty: no mistake
  std::string message;
};

} // namespace rota

#endif // ROTA_RUNTIME_TRAIN_OPTIONS_OPTIONROWS_H
