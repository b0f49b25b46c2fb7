// SPDX-License-Identifier: Apache-2.0
#include "tools/rota/plan/ExportPlan.h"

#include "runtime/files/Streams.h"
#include "runtime/program/JsonText.h"
#include "tools/planner/EngineRuns.h"
#include "tools/rota/Compile.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace rota {

using engines::EngineExport;
using nlohmann::ordered_json;

static ordered_json exportJson(engines::Engine engine,
                               const EngineExport &made) {
  ordered_json files = ordered_json::object(), missing = ordered_json::array();
  for (const engines::ExportedFile &file : made.files)
    files[file.name] = file.text;
  for (const engines::Remark &part : made.missing)
    missing.push_back({{"part", part.subject}, {"reason", part.reason}});
  return {{"engine", nameOf(engine)},
          {"version", versionOf(engine)},
          {"files", files},
          {"missing", missing}};
}

/// Writes the files into a folder, none of which may be there.
static int writeFiles(const std::string &folder, const EngineExport &made) {
  if (auto error = llvm::sys::fs::create_directories(folder))
    return reportBadInput(fmt::format(
        "'output': cannot make the folder '{}': {}", folder, error.message()));
  auto pathOf = [&](const engines::ExportedFile &file) {
    llvm::SmallString<128> path(folder);
    llvm::sys::path::append(path, file.name);
    return path.str().str();
  };
  for (const engines::ExportedFile &file : made.files)
    if (llvm::sys::fs::exists(pathOf(file)))
      return reportBadInput("'output': '" + pathOf(file) +
                            "' exists; it is not overwritten");
  for (const engines::ExportedFile &file : made.files) {
    if (int code = writeOutput(pathOf(file), file.text))
      return code;
    fmt::print("# wrote {}\n", pathOf(file));
  }
  return kExitSuccess;
}

int exportPlan(const RunOptions &options, const PlanRequest &request,
               const PlanAnswer &answer) {
  engines::Engine engine = *options.exported;
  std::string error;
  auto steps = options.given.contains("steps") ? std::optional(options.steps)
                                               : std::nullopt;
  auto made =
      engines::exportRun(engine, engineRunOf(request, answer, steps), error);
  if (!made)
    return reportBadInput(
        fmt::format("'export': {}: {}", nameOf(engine), error));
  if (options.json) {
    fmt::print("{}\n", jsonText(exportJson(engine, *made), 2));
    return kExitSuccess;
  }
  if (!options.output.empty()) {
    if (int code = writeFiles(options.output, *made))
      return code;
  } else {
    for (const engines::ExportedFile &file : made->files)
      fmt::print("# {}\n{}\n", file.name, file.text);
  }
  fmt::print("# {}\n", made->missing.empty()
                           ? "nothing is without an equivalent"
                           : "without an equivalent:");
  for (const engines::Remark &part : made->missing)
    fmt::print("#   {}: {}\n", part.subject, part.reason);
  return kExitSuccess;
}

} // namespace rota
