// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/rank/Connection.h"
#include "runtime/Error.h"
#include "runtime/collective/gpu/StagedCommunicator.h"
#include "runtime/collective/mpi/MpiCommunicator.h"
#include "runtime/collective/nccl/Connect.h"
#include "runtime/collective/nccl/EmulatedNccl.h"
#include "runtime/collective/nccl/HostTransfers.h"
#include "runtime/device/AvailableCores.h"
#include "runtime/program/DeviceTraits.h"
#include "runtime/program/MeshText.h"
#include "runtime/program/RuntimeMemory.h"
#include "runtime/text/Text.h"
#include "runtime/threads/StartThread.h"

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
    network = std::make_unique<LocalNetwork>(ranks, availableCores());
    count = static_cast<size_t>(ranks);
    return;
  }
  if (isEmulatedNccl()) {
    if (launch.processes > 1)
      throw InputError(fmt::format("{} started {} processes: expected 1, all "
                                   "ranks share the emulated GPU",
                                   launch.by, launch.processes));
    count = static_cast<size_t>(ranks);
    return;
  }
  if (launch.processes != ranks)
    throw InputError(fmt::format(
        "expected {}, one for each rank of the mesh {}, got {}{}",
        counted(ranks, "process", "es"), meshText(program.mesh),
        launch.processes,
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

bool Connection::isEmulatedNccl() const {
  return kind == RankKind::Nccl && traitsOf(program.device).isEmulated;
}

std::pair<int64_t, int64_t> Connection::ncclBytes() const {
  // Little, so that transfers go in many pieces.
  if (isEmulatedNccl())
    return {int64_t(1) << 20, int64_t(4) << 20};
  RuntimeMemory memory = runtimeMemory(program);
  return {memory.exchangeBytes, memory.hostBytes};
}

int64_t Connection::linkBytes() const {
  if (kind != RankKind::Nccl)
    return 0;
  auto [exchange, host] = ncclBytes();
  return exchange + host;
}

LinkedRanks Connection::link(const Devices &devices) {
  LinkedRanks linked;
  for (Communicator *end : hostEnds())
    linked.links.push_back({end, end});
  const std::vector<cuda::CudaDevice *> &gpus = devices.gpus;
  if (gpus.empty())
    return linked;
  if (kind == RankKind::Nccl) {
    linkByNccl(linked, gpus);
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

NcclEnd Connection::linkByNccl(cuda::CudaDevice &device, int rank) const {
  auto [exchangeBytes, hostBytes] = ncclBytes();
  NcclEnd end;
  end.exchange = device.makeArena(exchangeBytes + hostBytes);
  device.synchronize(); // the host's numbers do not wait for its clearing
  NcclRank own;
  own.launcher = launch.by;
  own.rank = rank;
  own.size = static_cast<int>(rankCount(program));
  own.workspace = end.exchange->at(0);
  own.workspaceBytes = exchangeBytes;
  auto tensors = makeNcclCommunicator(device, program, own, {.timing = timing});
  end.host = std::make_unique<HostTransfers>(
      *tensors, device, end.exchange->at(exchangeBytes), hostBytes);
  end.tensors = std::move(tensors);
  return end;
}

/// Several ranks connect at the same time: each waits for the others, and none
/// for one that has failed.
void Connection::linkByNccl(LinkedRanks &linked,
                            const std::vector<cuda::CudaDevice *> &gpus) const {
  linked.nccl.resize(gpus.size());
  EmulatedNcclStart start; // several ranks of a process are on the emulated GPU
  auto connect = [&](int i) {
    try {
      linked.nccl[i] = linkByNccl(*gpus[i], firstRank() + i);
    } catch (...) {
      start.abandon();
      throw;
    }
  };
  if (gpus.size() > 1)
    runTogether("connecting ranks", static_cast<int>(gpus.size()), connect);
  else
    connect(0);
  linked.links.clear();
  for (const NcclEnd &end : linked.nccl)
    linked.links.push_back({end.tensors.get(), end.host.get()});
}

void Connection::fail(const std::string &message) {
  // Communicators of NCCL end with their devices.
  if (network || process)
    hostEnds().front()->fail(message);
}

} // namespace rota
