// SPDX-License-Identifier: Apache-2.0
//
// A process finds the other ranks by NCCL's own start from an address, or an
// identifier that Open MPI spreads.
#ifndef ROTA_RUNTIME_COLLECTIVE_NCCL_CONNECT_H
#define ROTA_RUNTIME_COLLECTIVE_NCCL_CONNECT_H

#include "runtime/collective/nccl/NcclCommunicator.h"
#include "runtime/program/Program.h"

namespace rota {

/// Sets environment variables of CUDA and NCCL that the user has not set, so
/// that all streams of a rank run side by side, and recording a step waits for
/// no rank. To be called before the driver is loaded and before there are
/// threads.
void prepareForNccl();

/// The address at which rank 0 waits for the others, "host:port": NCCL_COMM_ID,
/// else MASTER_ADDR with the port MASTER_PORT + 1 (MASTER_PORT - 1 for 65535),
/// since torchrun listens at MASTER_PORT itself. Empty when the environment
/// says none. Throws InputError for half an address.
std::string rendezvousAddress();

/// A rank of a run with NCCL. The communicator's workspace is device memory, of
/// the same size on all ranks, and outlives it.
struct NcclRank {
  std::string launcher; // "torchrun", "srun", "mpirun"
  int rank = 0, size = 1;
  void *workspace = nullptr;
  int64_t workspaceBytes = 0;
};

/// Connects with the other ranks: on the emulated GPU threads of this process
/// over emulatedNccl(). Without a rendezvous address mpirun's
/// processes start MPI, spread an identifier, and end MPI. Throws InputError
/// where there is no rendezvous address, NCCL is missing, or the program needs
/// more streams than CUDA has queues.
std::unique_ptr<NcclCommunicator>
makeNcclCommunicator(cuda::CudaDevice &device, const Program &program,
                     const NcclRank &rank, NcclCommunicator::Options options);

} // namespace rota

#endif // ROTA_RUNTIME_COLLECTIVE_NCCL_CONNECT_H
