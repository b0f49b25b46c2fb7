// SPDX-License-Identifier: Apache-2.0
//
// Replaces the MPI communicator where mpi.h was missing at build time.
#include "runtime/Error.h"
#include "runtime/collective/mpi/MpiCommunicator.h"

namespace rota {

static constexpr const char *kMissing =
    "this trainer's runtime was built without MPI: expected mpi.h of Open MPI "
    "(Debian: libopenmpi-dev) when Rota was built";

std::unique_ptr<Communicator>
makeMpiCommunicator(std::function<std::string()>) {
  throw RunError(kMissing);
}

std::string mpiVersion() { throw RunError(kMissing); }

} // namespace rota
