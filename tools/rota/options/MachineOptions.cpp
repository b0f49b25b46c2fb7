// SPDX-License-Identifier: Apache-2.0
#include "tools/rota/options/MachineOptions.h"

#include "ir/rota/sharding/MeshText.h"
#include "runtime/text/Text.h"
#include "tools/planner/Machines.h"

#include <fmt/format.h>

using namespace rota;

OptionMistake rota::readMachine(RunOptions &options) {
  if (!options.machine.empty()) {
    std::string error;
    auto found = findMachine(options.machine, error);
    if (!found)
      return {"machine", error};
    options.compiler.machine = std::move(found->machine);
  }
  if (options.nodes == 0)
    return {};
  if (!options.compiler.machine)
    return {"nodes", "expected 'machine' beside it, got none"};
  if (options.given.contains("devices"))
    return {"nodes", "expected no 'devices' beside it, got " +
                         std::to_string(options.devices)};
  const std::vector<mlir::rota::NetworkLevel> &network =
      options.compiler.machine->network;
  int64_t inside = network.size() > 1 ? network.front().devices : 1;
  options.devices = options.nodes * inside;
  return {};
}

OptionMistake rota::checkCampaign(const CampaignRequest &run) {
  if (run.price > 0 && run.tokens == 0)
    return {"price", "expected 'tokens' beside it, got none"};
  if ((run.hoursBetweenFailures > 0) != (run.storageBytesPerSecond > 0))
    return {run.hoursBetweenFailures > 0 ? "mtbf" : "storage-bandwidth",
            "expected 'mtbf' and 'storage-bandwidth' together"};
  return {};
}

void rota::boundByMachine(RunOptions &options) {
  CompilerOptions &compiler = options.compiler;
  if (!compiler.machine || compiler.machine->memoryBytes == 0)
    return;
  int64_t ranks = 1;
  if (compiler.machine->cores > 0 && options.search) {
    ranks = options.devices;
  } else if (compiler.machine->cores > 0) {
    std::string error;
    auto sizes = mlir::rota::parseMeshSizes(compiler.shard.meshText, error);
    ranks = sizes ? llvm::product_of(*sizes) : 1;
  }
  compiler.memory = int64_t(compiler.machine->memoryBytes) / ranks;
  compiler.memoryText =
      fmt::format("{} bytes of machine '{}'", grouped(compiler.memory),
                  compiler.machine->name);
}
