// SPDX-License-Identifier: Apache-2.0
//
// Communicators between processes that mpirun or srun started, over Open MPI.
// The library is loaded when the communicator is made, so that one trainer also
// starts where there is none.
#ifndef ROTA_RUNTIME_COLLECTIVE_MPI_MPICOMMUNICATOR_H
#define ROTA_RUNTIME_COLLECTIVE_MPI_MPICOMMUNICATOR_H

#include "runtime/collective/Communicator.h"

#include <memory>

namespace rota {

/// This process's end; the rank is MPI's. Starts a thread that makes all calls
/// of MPI and ends when the communicator is destroyed, which waits for all
/// ranks unless the run has failed. Once in a process. Make it before other
/// threads: it blocks SIGTERM in the caller, so that its thread can say where
/// the rank was when mpirun ended it.
///
/// A rank that is silent for 3.5 seconds, dead or stopped, ends the run: the
/// next rank prints where both are and calls MPI_Abort. After fail() every
/// process is expected to leave by itself, with what it caught as its message;
/// after three seconds MPI_Abort ends those that did not.
///
/// Throws RunError where there is no MPI.
std::unique_ptr<Communicator> makeMpiCommunicator();

} // namespace rota

#endif // ROTA_RUNTIME_COLLECTIVE_MPI_MPICOMMUNICATOR_H
