// SPDX-License-Identifier: Apache-2.0
#include "tools/rota/Docs.h"

#include "models/Family.h"
#include "passes/pipeline/schedules/Schedules.h"
#include "runtime/Error.h"
#include "tools/rota/options/OptionTable.h"

#include <fmt/format.h>

using namespace rota;
using Verbs = std::span<const std::pair<Command, std::string_view>>;

/// A text inside of a cell of a table.
static std::string cell(std::string_view text) {
  std::string escaped;
  for (char c : text)
    escaped += c == '|' ? "\\|" : std::string(1, c);
  return escaped;
}

static void printFlags(Verbs verbs) {
  RunOptions options;
  fmt::print("# Flags of rota\n\nA trainer has those of `train`, `probe` and "
             "`eval` that do not change what is compiled.\n");
  std::vector<Option> table = optionTable(options);
  std::vector<std::string> groups;
  for (const Option &option : table)
    if (std::ranges::find(groups, option.group) == groups.end())
      groups.push_back(option.group);
  for (const std::string &group : groups) {
    fmt::print("\n## {}\n\n| flag | verbs | |\n|---|---|---|\n", group);
    for (const Option &option : table) {
      if (option.group != group)
        continue;
      std::string names;
      for (auto [command, name] : verbs)
        if (option.commands & unsigned(command))
          names += (names.empty() ? "" : ", ") + std::string(name);
      std::string value = valueHelp(option);
      fmt::print("| `--{}{}` | {} | {} |\n", option.name,
                 option.isFlag() || value.empty() ? "" : " " + cell(value),
                 names, cell(helpOf(option)));
    }
  }
}

static void printFamilies() {
  fmt::print("# Families of models\n\nValues of `model_type` in a "
             "configuration.\n\n| family | |\n|---|---|\n");
  for (const mlir::rota::Family *family : mlir::rota::allFamilies())
    fmt::print("| `{}` | {} |\n", family->modelType.str(),
               cell(family->description.str()));
}

static void printSchedules() {
  fmt::print("# Schedules\n\nNames for `--schedule`; a CSV file is another "
             "way.\n\n| schedule | pairs | |\n|---|---|---|\n");
  for (const pipe::Schedule &schedule : pipe::allSchedules())
    fmt::print("| `{}` | {} | {} |\n", schedule.name,
               schedule.hasPairs ? "yes" : "", cell(schedule.description));
}

int rota::printDocs(std::string_view topic, Verbs verbs) {
  if (topic == "flags")
    printFlags(verbs);
  else if (topic == "families")
    printFamilies();
  else if (topic == "schedules")
    printSchedules();
  else
    return Ending::badInput(
               "expected one of flags, families, schedules, got " +
               (topic.empty() ? "nothing" : "'" + std::string(topic) + "'"))
        .print();
  return kExitSuccess;
}
