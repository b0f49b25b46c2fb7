// SPDX-License-Identifier: Apache-2.0
//
// Open MPI's library, loaded at run time: its functions, and the addresses that
// are handles in its header.
#ifndef ROTA_RUNTIME_COLLECTIVE_MPI_LIBRARY_H
#define ROTA_RUNTIME_COLLECTIVE_MPI_LIBRARY_H

#define OMPI_SKIP_MPICXX 1
#include <mpi.h>

namespace rota {

/// Each function is as in the standard. To be called from one thread.
struct MpiLibrary {
  /// Loads the library for the rest of the process. Throws RunError where it is
  /// missing.
  MpiLibrary();

  decltype(&MPI_Init_thread) initThread;
  decltype(&MPI_Finalize) finalize;
  decltype(&MPI_Abort) abort;
  decltype(&MPI_Comm_rank) commRank;
  decltype(&MPI_Comm_size) commSize;
  decltype(&MPI_Comm_get_attr) commGetAttr;
  decltype(&MPI_Comm_set_errhandler) commSetErrhandler;
  decltype(&MPI_Isend) isend;
  decltype(&MPI_Irecv) irecv;
  decltype(&MPI_Testsome) testsome;
  decltype(&MPI_Test) test;
  decltype(&MPI_Ibarrier) ibarrier;
  decltype(&MPI_Cancel) cancel;
  decltype(&MPI_Request_free) requestFree;
  decltype(&MPI_Get_count) getCount;
  decltype(&MPI_Error_string) errorString;
  MPI_Comm world;
  MPI_Datatype byte;
  MPI_Request requestNull;
  MPI_Errhandler errorsReturn;
};

} // namespace rota

#endif // ROTA_RUNTIME_COLLECTIVE_MPI_LIBRARY_H
