// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/Launch.h"
#include "runtime/Error.h"
#include "runtime/collective/mpi/MpiCommunicator.h"

#include <algorithm>
#include <cstdlib>
#include <fmt/format.h>
#include <numeric>

namespace rota {

static int numberOf(const char *variable, int otherwise) {
  const char *text = std::getenv(variable);
  return text ? std::atoi(text) : otherwise;
}

ProcessLaunch findLaunch() {
  if (std::getenv("OMPI_COMM_WORLD_SIZE"))
    return {"mpirun", numberOf("OMPI_COMM_WORLD_SIZE", 1),
            numberOf("OMPI_COMM_WORLD_RANK", 0),
            numberOf("OMPI_COMM_WORLD_LOCAL_SIZE", 1)};
  // A batch script has a job's variables too, but not those of a step.
  if (std::getenv("SLURM_STEP_NUM_TASKS"))
    // Of "4(x2),3", tasks by node, the number of the first node.
    return {"srun", numberOf("SLURM_STEP_NUM_TASKS", 1),
            numberOf("SLURM_PROCID", 0),
            numberOf("SLURM_STEP_TASKS_PER_NODE", 1)};
  return {};
}

int shareOfCores(const ProcessLaunch &launch, int available, int all) {
  return std::clamp(all / std::max(1, launch.neighbours), 1, available);
}

/// "mesh data=2,stage=4".
static std::string meshText(const std::vector<MeshAxis> &mesh) {
  std::string text = "mesh ";
  for (size_t i = 0; i < mesh.size(); ++i)
    text += fmt::format("{}{}={}", i ? "," : "", mesh[i].name, mesh[i].size);
  return text;
}

Connection::Connection(const Program &program, RankKind kind,
                       const ProcessLaunch &launch) {
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
    for (int rank = 0; rank < ranks; ++rank)
      ends.push_back(&network->at(rank));
    return;
  }
  if (launch.processes != ranks)
    throw InputError(fmt::format(
        "expected {} processes, one for each rank of the {}, got {}{}", ranks,
        meshText(program.mesh), launch.processes,
        launch.by.empty() ? " (neither mpirun nor srun started this one)"
                          : ""));
  process = makeMpiCommunicator();
  ends.push_back(process.get());
}

} // namespace rota
