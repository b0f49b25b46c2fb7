// SPDX-License-Identifier: Apache-2.0
//
// Communicators between processes that mpirun or srun started, over Open MPI.
// The library is loaded when the communicator is made, so that the same trainer
// also starts on a machine without it.
#ifndef ROTA_RUNTIME_COLLECTIVE_MPI_MPICOMMUNICATOR_H
#define ROTA_RUNTIME_COLLECTIVE_MPI_MPICOMMUNICATOR_H

#include "runtime/Error.h"
#include "runtime/collective/Communicator.h"

#include <functional>
#include <memory>
#include <string>

namespace rota {

/// This process does not take part, and no other one learns why.
struct AloneError : RunError {
  using RunError::RunError;
};

/// The communicator of this process; its rank is MPI's. Starts a thread that
/// makes all calls of MPI and ends with the communicator, whose destructor
/// waits for all ranks unless the run has failed. At most one in a process.
/// Make it before other threads: it blocks SIGTERM in the caller, so that its
/// thread can print the rank's position, then `advice`, when mpirun ends the
/// process.
///
/// A rank that is silent for 3.5 seconds, dead or stopped, ends the run: the
/// next rank prints the positions of both, then `advice`, whole lines for
/// people, and calls MPI_Abort. After fail()
/// every process should leave by itself, with the error that it caught as its
/// message; after three seconds MPI_Abort ends the others.
///
/// Throws RunError where MPI is missing, AloneError where the system refuses
/// the thread.
std::unique_ptr<Communicator>
makeMpiCommunicator(std::function<std::string()> advice = {});

/// The version, in its own words ("Open MPI v4.1.4"), of the library that
/// makeMpiCommunicator would load. Throws RunError where MPI is missing.
std::string mpiVersion();

} // namespace rota

#endif // ROTA_RUNTIME_COLLECTIVE_MPI_MPICOMMUNICATOR_H
