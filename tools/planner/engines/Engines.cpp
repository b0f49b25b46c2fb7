// SPDX-License-Identifier: Apache-2.0
#include "tools/planner/engines/Engines.h"

#include "tools/planner/engines/Export.h"
#include "tools/planner/engines/Megatron.h"
#include "tools/planner/engines/TorchTitan.h"

namespace rota::engines {

const char *versionOf(Engine engine) {
  switch (engine) {
  case Engine::Megatron:
    return "Megatron-LM core_v0.19.0 (5be9626709af)";
  case Engine::TorchTitan:
    return "torchtitan v0.2.2 (73a0e6979dd1)";
  case Engine::MaxText:
    return "MaxText maxtext-v0.2.4 (538fe7a3f337)";
  case Engine::Torch:
    return "PyTorch main (00722e648b74), torch.distributed.pipelining";
  }
  return "";
}

static std::optional<EngineExport>
exportKnown(Engine engine, const EngineRun &run, std::string &error) {
  switch (engine) {
  case Engine::Megatron:
    return megatron::exportFlags(run, error);
  case Engine::TorchTitan:
    return torchtitan::exportSettings(run, error);
  case Engine::MaxText:
    return exportMaxText(run, error);
  case Engine::Torch:
    return exportTorch(run, error);
  }
  return std::nullopt;
}

std::optional<EngineExport> exportRun(Engine engine, const EngineRun &run,
                                      std::string &error) {
  std::optional<EngineExport> made = exportKnown(engine, run, error);
  if (made)
    for (const auto &[flag, instead] : run.unknown)
      made->missing.push_back({flag, instead});
  return made;
}

std::optional<EngineImport> importRun(const ImportRequest &request,
                                      std::string &error) {
  if (request.engine == Engine::Megatron)
    return megatron::importFlags(request, error);
  if (request.engine == Engine::TorchTitan)
    return torchtitan::importSettings(request, error);
  error = std::string("expected one of megatron, torchtitan, got ") +
          nameOf(request.engine);
  return std::nullopt;
}

} // namespace rota::engines
