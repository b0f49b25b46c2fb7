// SPDX-License-Identifier: Apache-2.0
#include "runtime/collective/mpi/Library.h"
#include "runtime/Error.h"
#include "runtime/collective/mpi/MpiCommunicator.h"

#include <dlfcn.h>
#include <fmt/format.h>

namespace rota {

static void *openLibrary() {
  // Global, since the plugins of Open MPI look up its symbols.
  for (const char *name : {"libmpi.so.40", "libmpi.so"})
    if (void *library = dlopen(name, RTLD_NOW | RTLD_GLOBAL))
      return library;
  throw RunError(
      fmt::format("cannot load Open MPI (Debian: libopenmpi3): {}", dlerror()));
}

template <typename T>
static void find(void *library, const char *name, T &place) {
  void *symbol = dlsym(library, name);
  if (!symbol)
    throw RunError(fmt::format("expected Open MPI's library, got one without "
                               "'{}'",
                               name));
  place = reinterpret_cast<T>(symbol);
}

MpiLibrary::MpiLibrary() {
  void *library = openLibrary();
  find(library, "MPI_Init_thread", initThread);
  find(library, "MPI_Finalize", finalize);
  find(library, "MPI_Abort", abort);
  find(library, "MPI_Comm_rank", commRank);
  find(library, "MPI_Comm_size", commSize);
  find(library, "MPI_Comm_get_attr", commGetAttr);
  find(library, "MPI_Comm_set_errhandler", commSetErrhandler);
  find(library, "MPI_Isend", isend);
  find(library, "MPI_Irecv", irecv);
  find(library, "MPI_Testsome", testsome);
  find(library, "MPI_Test", test);
  find(library, "MPI_Ibarrier", ibarrier);
  find(library, "MPI_Cancel", cancel);
  find(library, "MPI_Request_free", requestFree);
  find(library, "MPI_Get_count", getCount);
  find(library, "MPI_Error_string", errorString);
  find(library, "ompi_mpi_comm_world", world);
  find(library, "ompi_mpi_byte", byte);
  find(library, "ompi_request_null", requestNull);
  find(library, "ompi_mpi_errors_return", errorsReturn);
}

std::string mpiVersion() {
  decltype(&MPI_Get_library_version) libraryVersion = nullptr;
  find(openLibrary(), "MPI_Get_library_version", libraryVersion);
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = {};
  int length = 0;
  libraryVersion(text, &length);
  // Open MPI goes on with the machine that built it.
  std::string version(text, length);
  return version.substr(0, version.find(','));
}

} // namespace rota
