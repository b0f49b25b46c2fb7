// SPDX-License-Identifier: Apache-2.0
//
// The files in machines/ are strings of this library, so that rota finds them
// from any folder.
#include "tools/planner/Machines.h"

#include "models/JsonFile.h"
#include "runtime/options/Option.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"

using namespace rota;
using llvm::StringRef;
using mlir::rota::Machine, mlir::rota::MachineNumber;

namespace {

struct MachineText {
  StringRef name, text;
};
constexpr MachineText machineTexts[] = {
#include "tools/planner/machines.inc"
};

std::optional<FoundMachine> readText(StringRef text, std::string &error) {
  llvm::Expected<llvm::json::Value> json = llvm::json::parse(text);
  if (!json) {
    error = toString(json.takeError());
    return std::nullopt;
  }
  auto machine = Machine::read(*json, error);
  if (machine)
    error = machine->checkSources();
  if (!error.empty())
    return std::nullopt;
  return FoundMachine{std::move(*machine), text.str()};
}

/// Reports the place of a syntax error, and a key that stands twice.
std::optional<FoundMachine> readFile(StringRef path, std::string &error) {
  auto file = mlir::rota::JsonFile::read(
      path,
      [&](const mlir::rota::FileLocation &place, const llvm::Twine &message) {
        error = toString(place) + ": " + message.str();
      });
  if (!file)
    return std::nullopt;
  auto found = readText(file->source(), error);
  if (!found)
    error = path.str() + ": " + error;
  return found;
}

/// "; did you mean 'X'?" for the first machine whose name begins so, or the one
/// that is spelled most like it.
std::string suggestMachine(StringRef name) {
  std::vector<std::string> names = machineNames();
  for (const std::string &candidate : names)
    if (!name.empty() && StringRef(candidate).starts_with_insensitive(name))
      return "; did you mean '" + candidate + "'?";
  return nearestOf(names, name.lower());
}

/// The machine that is assumed where none is named, as a file says it.
Machine genericMachine() {
  Machine machine;
  machine.description = "assumed where no machine is named";
  for (const char *type : {"bf16", "f16", "f32", "f64"})
    machine.types[type].flopsPerSecond = machine.rowFlopsPerSecond;
  for (const MachineNumber &number : machine.numbers()) {
    StringRef path = number.path;
    machine.sources[path.take_front(path.find_first_of(".[")).str()] =
        "assumed";
  }
  return machine;
}

} // namespace

std::vector<std::string> rota::machineNames() {
  std::vector<std::string> names;
  for (const MachineText &machine : machineTexts)
    names.push_back(machine.name.str());
  names.push_back(kGenericMachine);
  return names;
}

std::optional<FoundMachine> rota::findMachine(StringRef nameOrFile,
                                              std::string &error) {
  for (const MachineText &machine : machineTexts)
    if (nameOrFile == machine.name)
      return readText(machine.text, error);
  if (nameOrFile == kGenericMachine)
    return readText(genericMachine().write(), error);
  if (nameOrFile.contains('/') || nameOrFile.ends_with(".json") ||
      llvm::sys::fs::exists(nameOrFile))
    return readFile(nameOrFile, error);
  error = "expected a file, or one of " + llvm::join(machineNames(), ", ") +
          ", got '" + nameOrFile.str() + "'" + suggestMachine(nameOrFile);
  return std::nullopt;
}
