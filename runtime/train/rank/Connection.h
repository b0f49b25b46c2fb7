// SPDX-License-Identifier: Apache-2.0
//
// The communicators of this process's ranks.
#ifndef ROTA_RUNTIME_TRAIN_RANK_CONNECTION_H
#define ROTA_RUNTIME_TRAIN_RANK_CONNECTION_H

#include "runtime/collective/gpu/SharedGpuNetwork.h"
#include "runtime/collective/local/LocalNetwork.h"
#include "runtime/device/services/MakeDevice.h"
#include "runtime/program/Program.h"
#include "runtime/train/options/TrainerOptions.h"
#include "runtime/train/rank/Launch.h"

#include <memory>

namespace rota {

/// The ends of a rank's communication: one, where the device's memory is the
/// host's.
struct Links {
  Communicator *tensors = nullptr; // memory of the rank's device
  Communicator *host = nullptr;
};

/// A rank's end of NCCL.
struct NcclEnd {
  std::unique_ptr<Arena> exchange;
  std::unique_ptr<Communicator> tensors, host;
};

/// The links of this process's ranks, and what they belong to. It must not
/// outlive the devices.
struct LinkedRanks {
  std::vector<NcclEnd> nccl;
  std::unique_ptr<SharedGpuNetwork> shared; // threads on one GPU
  std::unique_ptr<Communicator> own;        // one process's, from its GPU
  std::vector<Links> links;
};

/// All ranks of a program's mesh as threads, or one of the processes. On the
/// emulated GPU the ranks of NCCL are threads, too.
class Connection {
public:
  /// Throws InputError when the number of processes is not that of the mesh's
  /// ranks. With `timing`, transfers of GPUs have times, and a rank's host
  /// waits for each of them. `advice`: see makeMpiCommunicator.
  Connection(const Program &program, RankKind kind, const ProcessLaunch &launch,
             bool timing, std::function<std::string()> advice = {});

  /// Ranks of this process, and the number of the first of them.
  size_t localRanks() const { return count; }
  int firstRank() const { return network ? 0 : launch.process; }
  /// Device memory that the links of a rank take.
  int64_t linkBytes() const;
  /// Connects the ranks' devices. The connection must outlive the use of the
  /// links.
  LinkedRanks link(const Devices &devices);
  /// Ends the run on all ranks.
  void fail(const std::string &message);

private:
  std::vector<Communicator *> hostEnds() const;
  bool isEmulatedNccl() const;
  /// Device memory for exchanges and for numbers of the host, in bytes.
  std::pair<int64_t, int64_t> ncclBytes() const;
  NcclEnd linkByNccl(cuda::CudaDevice &device, int rank) const;
  void linkByNccl(LinkedRanks &linked,
                  const std::vector<cuda::CudaDevice *> &gpus) const;

  const Program &program;
  const RankKind kind;
  const ProcessLaunch launch;
  const bool timing;
  size_t count = 1;
  std::unique_ptr<LocalNetwork> network; // threads
  std::unique_ptr<Communicator> process; // mpi
};

} // namespace rota

#endif // ROTA_RUNTIME_TRAIN_RANK_CONNECTION_H
