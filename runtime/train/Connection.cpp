// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/Connection.h"
#include "runtime/Error.h"
#include "runtime/collective/gpu/StagedCommunicator.h"
#include "runtime/collective/mpi/MpiCommunicator.h"

#include <fmt/format.h>
#include <numeric>

namespace rota {

/// "mesh data=2,stage=4".
static std::string meshText(const std::vector<MeshAxis> &mesh) {
  std::string text = "mesh ";
  for (size_t i = 0; i < mesh.size(); ++i)
    text += fmt::format("{}{}={}", i ? "," : "", mesh[i].name, mesh[i].size);
  return text;
}

Connection::Connection(const Program &program, RankKind kind,
                       const ProcessLaunch &launch)
    : program(program) {
  std::vector<int> axes(program.mesh.size());
  std::iota(axes.begin(), axes.end(), 0);
  auto ranks = static_cast<int>(groupSize(program.mesh, axes));
  if (kind == RankKind::Threads) {
    if (launch.processes > 1)
      throw InputError(fmt::format(
          "{} started {} processes, and with --ranks threads each would train "
          "alone: expected --ranks mpi, or 1 process",
          launch.by, launch.processes));
    network = std::make_unique<LocalNetwork>(ranks);
    count = static_cast<size_t>(ranks);
    return;
  }
  if (launch.processes != ranks)
    throw InputError(fmt::format(
        "expected {} processes, one for each rank of the {}, got {}{}", ranks,
        meshText(program.mesh), launch.processes,
        launch.by.empty() ? " (neither mpirun nor srun started this one)"
                          : ""));
  process = makeMpiCommunicator();
}

std::vector<Communicator *> Connection::hostEnds() const {
  if (process)
    return {process.get()};
  std::vector<Communicator *> ends;
  for (size_t i = 0; i < count; ++i)
    ends.push_back(&network->at(static_cast<int>(i)));
  return ends;
}

LinkedRanks Connection::link(std::span<const std::unique_ptr<Device>> devices) {
  LinkedRanks linked;
  for (Communicator *end : hostEnds())
    linked.links.push_back({end, end});
  if (program.device == DeviceKind::Cpu)
    return linked;
  std::vector<cuda::CudaDevice *> gpus;
  for (const std::unique_ptr<Device> &device : devices)
    gpus.push_back(static_cast<cuda::CudaDevice *>(device.get()));
  if (process) {
    linked.own = std::make_unique<StagedCommunicator>(*process, *gpus.front());
    linked.links.front().tensors = linked.own.get();
    return linked;
  }
  linked.shared = std::make_unique<SharedGpuNetwork>(gpus, /*timing=*/false);
  for (size_t i = 0; i < count; ++i)
    linked.links[i].tensors = &linked.shared->at(static_cast<int>(i));
  return linked;
}

void Connection::fail(const std::string &message) {
  hostEnds().front()->fail(message);
}

} // namespace rota
