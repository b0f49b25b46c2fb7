// SPDX-License-Identifier: Apache-2.0
//
// Compiled with exceptions.
#include "tools/measure/GpuMessages.h"
#include "runtime/collective/gpu/SharedGpuNetwork.h"
#include "runtime/collective/nccl/Connect.h"
#include "runtime/device/services/MakeDevice.h"

#include <fmt/format.h>

using mlir::rota::Machine;
using mlir::rota::NetworkLevel;

namespace rota {

static MessageRank rankOf(Device &device, int64_t bytes, int ranks) {
  return {device.makeArena(bytes), device.makeArena(bytes * ranks), nullptr,
          [&device] { device.synchronize(); }};
}

MessageRates timeGpuMessages(std::span<const RotaGpuCode> code, int ranks,
                             int64_t bytes, double seconds) {
  constexpr int64_t kWorkspace = int64_t(128) << 20; // a trainer's
  const NcclApi &nccl = loadNccl();
  NcclId id = {};
  nccl.check(nccl.uniqueId(&id), "identifier of the run");
  NcclPlan plan;
  std::vector<int> everyone;
  for (int rank = 0; rank < ranks; ++rank)
    everyone.push_back(rank);
  for (Stream stream : {Stream::Weights, Stream::Gradients})
    plan.add({stream, false, everyone});
  for (int rank = 0; rank < ranks; ++rank)
    plan.add({Stream::Forward, true, {rank, (rank + 1) % ranks}});
  std::vector<Devices> devices;
  std::vector<std::unique_ptr<Arena>> workspaces; // gone before the devices
  std::vector<MessageRank> ends;
  for (int rank = 0; rank < ranks; ++rank) {
    DeviceOptions options;
    options.process = rank;
    devices.push_back(makeDevices(DeviceKind::Cuda, 1, code, options));
    Device &device = *devices.back().ranks.front();
    cuda::CudaDevice *gpu = devices.back().gpus.front();
    void *workspace =
        workspaces.emplace_back(device.makeArena(kWorkspace))->at(0);
    MessageRank &end = ends.emplace_back(rankOf(device, bytes, ranks));
    end.connect = [&, gpu, rank, workspace] {
      return std::make_shared<NcclCommunicator>(
          *gpu, nccl, rank, ranks, id, plan, workspace, kWorkspace,
          NcclCommunicator::Options{.patience = 60});
    };
  }
  return timeMessages(std::move(ends), seconds);
}

MessageRates timeSharedMessages(std::span<const RotaGpuCode> code, int ranks,
                                int64_t bytes) {
  Devices devices = makeDevices(DeviceKind::Simt, size_t(ranks), code, {});
  SharedGpuNetwork network(devices.gpus, /*timing=*/false);
  std::vector<MessageRank> ends;
  for (int rank = 0; rank < ranks; ++rank) {
    MessageRank &end =
        ends.emplace_back(rankOf(*devices.ranks[rank], bytes, ranks));
    end.connect = [&network, rank] {
      return std::shared_ptr<Communicator>(std::shared_ptr<Communicator>(),
                                           &network.at(rank));
    };
  }
  return timeMessages(std::move(ends), /*seconds=*/0);
}

void setGpuNetwork(Machine &machine, const NetworkLevel *measured,
                   const Machine *described, const std::string &source) {
  machine.network.clear();
  if (measured) {
    machine.network.push_back(*measured);
    machine.sources["network[0]"] =
        source + ": all-gather, reduce-scatter and messages";
    machine.sources["network[0].efficiency"] = "part of the measured bandwidth";
    machine.sources["network[0].slows_work"] =
        "assumed: transfers leave other work its speed";
    if (described && described->network.front().slowsWork > 0) {
      machine.network[0].slowsWork = described->network.front().slowsWork;
      machine.sources["network[0].slows_work"] =
          described->name + ": " + described->sourceOf("network[0].slows_work");
    }
  }
  int64_t inside = measured ? measured->devices : 1;
  for (size_t i = 0; described && i < described->network.size(); ++i) {
    const NetworkLevel &level = described->network[i];
    if (level.devices != 0 &&
        (level.devices <= inside || level.devices % inside != 0))
      continue;
    size_t number = machine.network.size();
    machine.network.push_back(level);
    for (const char *key : {"devices", "bytes_per_second", "latency_seconds",
                            "efficiency", "slows_work"})
      machine.sources[fmt::format("network[{}].{}", number, key)] = fmt::format(
          "{}: {}", described->name,
          described->sourceOf(fmt::format("network[{}].{}", i, key)));
  }
  if (machine.network.empty()) {
    machine.network = Machine().network;
    machine.sources["network"] =
        "assumed: one GPU has no messages to measure; --machine names a "
        "described machine, whose levels are taken";
  }
  machine.network.back().devices = 0; // any number
}

} // namespace rota
