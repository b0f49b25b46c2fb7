// SPDX-License-Identifier: Apache-2.0
//
// The start of this process.
#ifndef ROTA_RUNTIME_TRAIN_RANK_LAUNCH_H
#define ROTA_RUNTIME_TRAIN_RANK_LAUNCH_H

#include <string>

namespace rota {

/// The launcher of this process, as environment variables say.
struct ProcessLaunch {
  std::string by; // "torchrun", "mpirun" or "srun"; empty: none of them
  int processes = 1;
  int process = 0;      // the number of this process
  int neighbours = 1;   // processes on this machine, this one included
  int localProcess = 0; // the number of this process among them
};
ProcessLaunch findLaunch();

/// The default number of cores that a process computes with: those that it may
/// run on, and at most its share of all cores of the machine.
int shareOfCores(const ProcessLaunch &launch, int available, int all);

} // namespace rota

#endif // ROTA_RUNTIME_TRAIN_RANK_LAUNCH_H
