// SPDX-License-Identifier: Apache-2.0
//
// The ranks of this process: threads, or the one of a process that mpirun or
// srun started.
#ifndef ROTA_RUNTIME_TRAIN_LAUNCH_H
#define ROTA_RUNTIME_TRAIN_LAUNCH_H

#include "runtime/collective/Communicator.h"
#include "runtime/collective/local/LocalNetwork.h"
#include "runtime/train/Options.h"

#include <memory>

namespace rota {

/// The launcher of this process, as environment variables say.
struct ProcessLaunch {
  std::string by; // "mpirun" or "srun"; empty: neither
  int processes = 1;
  int process = 0;    // the number of this process
  int neighbours = 1; // processes on this machine, this one included
};
ProcessLaunch findLaunch();

/// The default number of cores that a process computes with: those that it may
/// run on, and at most its share of all cores of the machine.
int shareOfCores(const ProcessLaunch &launch, int available, int all);

/// The communicators of this process's ranks.
class Connection {
public:
  /// Threads for all ranks of the program's mesh, or one of the processes.
  /// Throws InputError when their number is not that of the mesh's ranks.
  Connection(const Program &program, RankKind kind,
             const ProcessLaunch &launch);

  const std::vector<Communicator *> &communicators() const { return ends; }
  /// Ends the run on all ranks.
  void fail(const std::string &message) { ends.front()->fail(message); }

private:
  std::unique_ptr<LocalNetwork> network; // threads
  std::unique_ptr<Communicator> process; // mpi
  std::vector<Communicator *> ends;
};

} // namespace rota

#endif // ROTA_RUNTIME_TRAIN_LAUNCH_H
