// SPDX-License-Identifier: Apache-2.0
//
// Plans in the words of other engines: flags and configurations that these
// read, and runs that somebody has there as runs of Rota. Plain types, without
// MLIR and without a command line's.
#ifndef ROTA_TOOLS_PLANNER_ENGINES_ENGINES_H
#define ROTA_TOOLS_PLANNER_ENGINES_ENGINES_H

#include "runtime/text/Names.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace rota {
namespace engines {

enum class Engine { Megatron, TorchTitan, MaxText, Torch };

} // namespace engines
template <> struct Names<engines::Engine> {
  static constexpr const char *list[] = {"megatron", "torchtitan", "maxtext",
                                         "torch"};
};
} // namespace rota

namespace rota::engines {

/// The engine's name and the release and commit of its sources whose spelling
/// Rota follows.
const char *versionOf(Engine engine);

/// A part of a plan or of an engine's configuration, and what became of it.
struct Remark {
  std::string subject, reason;
};

struct ExportedFile {
  std::string name, text;
};

struct EngineExport {
  std::vector<ExportedFile> files; // the first one is the configuration
  std::vector<Remark> missing;     // parts of the plan without an equivalent
};

struct EngineRun;

/// The run in the engine's words. Nothing, and an `error` that names the part,
/// where the engine cannot run it at all. Files have no configuration of data
/// and of a tokenizer, which a plan has not.
std::optional<EngineExport> exportRun(Engine engine, const EngineRun &run,
                                      std::string &error);

/// A configuration of another engine.
struct ImportRequest {
  Engine engine = Engine::Megatron;
  /// Megatron's flags, after the launcher's command if there is one; or the
  /// text of torchtitan's configuration.
  std::string text;
  std::string source;    // a name for messages: the path, or "flags"
  int64_t devices = 0;   // ranks in all, which flags do not say; 0: unknown
  bool hasModel = false; // the model is known: that of the text does not count
  bool isSearched = false; // `devices` are those of a search, not of the run
};

/// A run of Rota by its options: names of long flags without dashes, each with
/// its value or its list of values.
using OptionTexts =
    std::vector<std::pair<std::string, std::vector<std::string>>>;

struct EngineImport {
  OptionTexts options;
  std::string modelName;
  std::string config;          // the model's config.json; empty: `hasModel`
  std::vector<Remark> remarks; // what the plan lacks, or takes otherwise
  std::vector<std::string> ignored; // known settings that no plan depends on
};

/// The options of the run that the text describes. Nothing, and an `error` with
/// the place, for a setting that the engine does not know or Rota cannot
/// follow, and for numbers that do not fit each other.
std::optional<EngineImport> importRun(const ImportRequest &request,
                                      std::string &error);

} // namespace rota::engines

#endif // ROTA_TOOLS_PLANNER_ENGINES_ENGINES_H
