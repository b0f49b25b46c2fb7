// SPDX-License-Identifier: Apache-2.0
//
// The part of NCCL that the runtime calls, declared here so that neither the
// compiler nor a trainer needs its header. Layouts and numbers are those of
// nccl.h in version 2.18, which later versions accept.
#ifndef ROTA_RUNTIME_COLLECTIVE_NCCL_NCCLAPI_H
#define ROTA_RUNTIME_COLLECTIVE_NCCL_NCCLAPI_H

#include "runtime/device/cuda/DriverApi.h"

#include <climits>

struct ncclComm; // the tag of nccl.h

namespace rota {

using NcclResult = int;
inline constexpr NcclResult kNcclSuccess = 0;
inline constexpr NcclResult kNcclInvalidUsage = 5;
inline constexpr NcclResult kNcclInProgress = 7;

using NcclHandle = ncclComm *;
inline constexpr int kNcclBytes = 1;    // ncclUint8: one element is one byte
inline constexpr int kNcclNoColor = -1; // NCCL_SPLIT_NOCOLOR

/// ncclUniqueId
struct NcclId {
  char bytes[128];
};

/// ncclConfig_t of version 2.18; INT_MIN and null leave the choice to NCCL.
struct NcclConfig {
  size_t size = sizeof(NcclConfig);
  unsigned magic = 0xcafebeef;
  unsigned version = 21800;
  int blocking = 1;
  int clusterSize = INT_MIN;
  int leastBlocks = INT_MIN;
  int mostBlocks = INT_MIN; // blocks of a kernel
  const char *network = nullptr;
  int shareSplit = INT_MIN;
};

/// X(type of the result, member, symbol of the library, parameters)
#define ROTA_NCCL_FUNCTIONS(X)                                                 \
  X(NcclResult, version, "ncclGetVersion", (int *version))                     \
  X(NcclResult, uniqueId, "ncclGetUniqueId", (NcclId * id))                    \
  X(NcclResult, connect, "ncclCommInitRankConfig",                             \
    (NcclHandle * result, int ranks, NcclId id, int rank, NcclConfig *config)) \
  X(NcclResult, split, "ncclCommSplit",                                        \
    (NcclHandle parent, int color, int key, NcclHandle *result,                \
     NcclConfig *config))                                                      \
  X(NcclResult, destroy, "ncclCommDestroy", (NcclHandle handle))               \
  X(NcclResult, abort, "ncclCommAbort", (NcclHandle handle))                   \
  X(NcclResult, asyncError, "ncclCommGetAsyncError",                           \
    (NcclHandle handle, NcclResult * error))                                   \
  X(NcclResult, beginGroup, "ncclGroupStart", ())                              \
  X(NcclResult, endGroup, "ncclGroupEnd", ())                                  \
  X(NcclResult, send, "ncclSend",                                              \
    (const void *source, size_t count, int type, int peer, NcclHandle handle,  \
     cuda::StreamHandle stream))                                               \
  X(NcclResult, receive, "ncclRecv",                                           \
    (void *destination, size_t count, int type, int peer, NcclHandle handle,   \
     cuda::StreamHandle stream))                                               \
  X(NcclResult, allGather, "ncclAllGather",                                    \
    (const void *source, void *destination, size_t count, int type,            \
     NcclHandle handle, cuda::StreamHandle stream))                            \
  X(const char *, errorText, "ncclGetErrorString", (NcclResult result))        \
  X(const char *, lastError, "ncclGetLastError", (NcclHandle handle))

struct NcclApi {
#define X(result, member, symbol, parameters)                                  \
  result(*member) parameters = nullptr;
  ROTA_NCCL_FUNCTIONS(X)
#undef X

  /// Throws RunError with NCCL's words when `result` is an error: "NCCL: what:
  /// invalid usage: Duplicate GPU detected : ...".
  void check(NcclResult result, const char *what) const;
};

/// Throws InputError when NCCL's version, 22809 for 2.28.9, is below 2.18.
void checkNcclVersion(int version);

/// The functions of libnccl.so.2, which is loaded once. Throws InputError that
/// says what is missing and what to install.
const NcclApi &loadNccl();

} // namespace rota

#endif // ROTA_RUNTIME_COLLECTIVE_NCCL_NCCLAPI_H
