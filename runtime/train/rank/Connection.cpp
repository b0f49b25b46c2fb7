// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/rank/Connection.h"
#include "runtime/Error.h"
#include "runtime/collective/gpu/StagedCommunicator.h"
#include "runtime/collective/mpi/MpiCommunicator.h"
#include "runtime/collective/nccl/Connect.h"
#include "runtime/collective/nccl/HostTransfers.h"
#include "runtime/program/DeviceTraits.h"
#include "runtime/program/MeshText.h"
#include "runtime/program/RuntimeMemory.h"

#include <fmt/format.h>

namespace rota {

Connection::Connection(const Program &program, RankKind kind,
                       const ProcessLaunch &launch, bool timing,
                       std::function<std::string()> advice)
    : program(program), kind(kind), launch(launch), timing(timing) {
  auto ranks = static_cast<int>(rankCount(program));
  if (kind == RankKind::Threads) {
    if (launch.processes > 1)
      throw InputError(fmt::format(
          "{} started {} processes, and with --ranks threads each would train "
          "alone: expected --ranks mpi or nccl, or 1 process",
          launch.by, launch.processes));
    network = std::make_unique<LocalNetwork>(ranks);
    count = static_cast<size_t>(ranks);
    return;
  }
  if (launch.processes != ranks)
    throw InputError(fmt::format(
        "expected {} processes, one for each rank of the mesh {}, got {}{}",
        ranks, meshText(program.mesh), launch.processes,
        launch.by.empty()
            ? " (neither torchrun nor mpirun nor srun started this one)"
            : ""));
  if (kind == RankKind::Mpi)
    process = makeMpiCommunicator(std::move(advice));
  else if (!traitsOf(program.device).hasNccl)
    throw InputError(
        fmt::format("--ranks nccl: expected a program for cuda, got one for {}",
                    nameOf(program.device)));
  else
    prepareForNccl();
}

std::vector<Communicator *> Connection::hostEnds() const {
  if (process)
    return {process.get()};
  std::vector<Communicator *> ends;
  for (size_t i = 0; network && i < count; ++i)
    ends.push_back(&network->at(static_cast<int>(i)));
  return ends;
}

int64_t Connection::linkBytes() const {
  if (kind != RankKind::Nccl)
    return 0;
  RuntimeMemory memory = runtimeMemory(program);
  return memory.exchangeBytes + memory.hostBytes;
}

LinkedRanks Connection::link(const Devices &devices) {
  LinkedRanks linked;
  for (Communicator *end : hostEnds())
    linked.links.push_back({end, end});
  const std::vector<cuda::CudaDevice *> &gpus = devices.gpus;
  if (gpus.empty())
    return linked;
  if (kind == RankKind::Nccl) {
    linkByNccl(linked, *gpus.front());
    return linked;
  }
  if (process) {
    linked.own = std::make_unique<StagedCommunicator>(*process, *gpus.front());
    linked.links.front().tensors = linked.own.get();
    return linked;
  }
  linked.shared = std::make_unique<SharedGpuNetwork>(gpus, timing);
  for (size_t i = 0; i < count; ++i)
    linked.links[i].tensors = &linked.shared->at(static_cast<int>(i));
  return linked;
}

void Connection::linkByNccl(LinkedRanks &linked,
                            cuda::CudaDevice &device) const {
  RuntimeMemory memory = runtimeMemory(program);
  linked.exchange = device.makeArena(linkBytes());
  NcclRank rank;
  rank.launcher = launch.by;
  rank.rank = launch.process;
  rank.size = launch.processes;
  rank.workspace = linked.exchange->at(0);
  rank.workspaceBytes = memory.exchangeBytes;
  auto tensors =
      makeNcclCommunicator(device, program, rank, {.timing = timing});
  linked.ownHost = std::make_unique<HostTransfers>(
      *tensors, device, linked.exchange->at(memory.exchangeBytes),
      memory.hostBytes);
  linked.links = {{tensors.get(), linked.ownHost.get()}};
  linked.own = std::move(tensors);
}

void Connection::fail(const std::string &message) {
  // Communicators of NCCL end with their devices.
  if (network || process)
    hostEnds().front()->fail(message);
}

} // namespace rota
