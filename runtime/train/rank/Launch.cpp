// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/rank/Launch.h"

#include <algorithm>
#include <cstdlib>

namespace rota {

static int numberOf(const char *variable, int otherwise) {
  const char *text = std::getenv(variable);
  return text ? std::atoi(text) : otherwise;
}

ProcessLaunch findLaunch() {
  // First, since srun or mpirun may have started torchrun itself.
  if (std::getenv("RANK") && std::getenv("WORLD_SIZE") &&
      std::getenv("LOCAL_RANK"))
    return {"torchrun", numberOf("WORLD_SIZE", 1), numberOf("RANK", 0),
            numberOf("LOCAL_WORLD_SIZE", 1), numberOf("LOCAL_RANK", 0)};
  if (std::getenv("OMPI_COMM_WORLD_SIZE"))
    return {"mpirun", numberOf("OMPI_COMM_WORLD_SIZE", 1),
            numberOf("OMPI_COMM_WORLD_RANK", 0),
            numberOf("OMPI_COMM_WORLD_LOCAL_SIZE", 1),
            numberOf("OMPI_COMM_WORLD_LOCAL_RANK", 0)};
  // A batch script has a job's variables too, but not those of a step.
  if (std::getenv("SLURM_STEP_NUM_TASKS"))
    // The first number of "4(x2),3", tasks by node.
    return {"srun", numberOf("SLURM_STEP_NUM_TASKS", 1),
            numberOf("SLURM_PROCID", 0),
            numberOf("SLURM_STEP_TASKS_PER_NODE", 1),
            numberOf("SLURM_LOCALID", 0)};
  return {};
}

int shareOfCores(const ProcessLaunch &launch, int available, int all) {
  return std::clamp(all / std::max(1, launch.neighbours), 1, available);
}

} // namespace rota
