// SPDX-License-Identifier: Apache-2.0
#include "tools/rota/options/Import.h"

#include "ir/rota/sharding/MeshText.h"
#include "runtime/text/Text.h"
#include "tools/planner/engines/Engines.h"
#include "tools/planner/search/PlanCandidate.h"
#include "tools/rota/options/MachineOptions.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"

#include <cstdio>

namespace rota {

using engines::Engine;

/// The engine and the text of `imported`, as its first word wants it.
static std::optional<engines::ImportRequest>
requestOf(const RunOptions &options, std::string &error) {
  const std::vector<std::string> &words = options.imported;
  if (words.size() != 2) {
    error = "expected an engine and a run, got " +
            counted(int64_t(words.size()), "text");
    return std::nullopt;
  }
  engines::ImportRequest request;
  request.devices = options.devices;
  request.hasModel = options.given.contains("model");
  request.isSearched = options.search;
  request.text = words[1];
  request.source = "flags";
  if (words[0] == nameOf(Engine::Megatron))
    return request;
  if (words[0] != nameOf(Engine::TorchTitan)) {
    error = "expected one of megatron, torchtitan, got '" + words[0] + "'";
    return std::nullopt;
  }
  request.engine = Engine::TorchTitan;
  request.source = words[1];
  auto file = llvm::sys::fs::is_regular_file(words[1])
                  ? llvm::MemoryBuffer::getFile(words[1], /*IsText=*/true)
                  : std::make_error_code(std::errc::no_such_file_or_directory);
  if (!file) {
    error = "cannot read '" + words[1] + "': " + file.getError().message();
    return std::nullopt;
  }
  request.text = (*file)->getBuffer().str();
  return request;
}

static void printNotes(const engines::EngineImport &import,
                       const char *engine) {
  for (const engines::Remark &remark : import.remarks)
    std::fprintf(stderr, "note: %s: %s: %s\n", engine, remark.subject.c_str(),
                 remark.reason.c_str());
  if (!import.ignored.empty())
    std::fprintf(stderr, "note: %s: not of a plan: %s\n", engine,
                 llvm::join(import.ignored, ", ").c_str());
}

/// The ranks of a mesh; 0 where a size is open.
static int64_t ranksOf(const std::vector<std::string> &mesh) {
  std::string error;
  auto sizes = mlir::rota::parseMeshSizes(llvm::join(mesh, ","), error);
  return sizes ? std::max<int64_t>(llvm::product_of(*sizes), 0) : 0;
}

std::optional<Ending> takeImport(const std::vector<Option> &table,
                                 RunOptions &options) {
  if (!options.given.contains("import"))
    return std::nullopt;
  // Nodes of a machine say the ranks, too.
  if (OptionMistake mistake = readMachine(options); !mistake.option.empty())
    return Ending::badInput("'" + mistake.option + "': " + mistake.message);
  std::string error;
  auto request = requestOf(options, error);
  auto import = request ? engines::importRun(*request, error) : std::nullopt;
  if (!import)
    return Ending::badInput("'import': " + error);
  constexpr unsigned verbs = Command::Train | Command::Compile | Command::Plan;
  for (const auto &[name, texts] : import->options) {
    const Option *option = findOption(table, name, verbs);
    if (!option || options.given.contains(name))
      continue;
    if (options.search && isSearched(name)) {
      if (name == "mesh" && options.devices == 0)
        options.devices = ranksOf(texts);
      continue;
    }
    if (std::string wrong = assignText(*option, texts); !wrong.empty())
      return Ending::badInput("'import': '" + name + "': " + wrong);
    options.given.insert(name);
  }
  if (!request->hasModel) {
    options.compiler.model = import->modelName;
    options.compiler.build.config = import->config;
    options.given.insert("model");
  }
  printNotes(*import, nameOf(request->engine));
  return std::nullopt;
}

} // namespace rota
