// SPDX-License-Identifier: Apache-2.0
//
// NCCL between ranks that are threads of one process and share the emulated
// GPU as if each had its own. So what a run of several GPUs does runs without
// them.
#ifndef ROTA_RUNTIME_COLLECTIVE_NCCL_EMULATEDNCCL_H
#define ROTA_RUNTIME_COLLECTIVE_NCCL_EMULATEDNCCL_H

#include "runtime/collective/nccl/NcclApi.h"

namespace rota {

/// Functions on streams of the emulated driver. As with NCCL, a call keeps its
/// stream from going on until its peers have come to theirs; calls on other
/// streams go on. Not in a capture. Bytes that two members do not agree on fail
/// the GPU.
const NcclApi &emulatedNccl();

/// Exists while the ranks of the process connect, once in a run.
class EmulatedNcclStart {
public:
  EmulatedNcclStart() = default;
  ~EmulatedNcclStart();
  EmulatedNcclStart(const EmulatedNcclStart &) = delete;
  EmulatedNcclStart &operator=(const EmulatedNcclStart &) = delete;

  /// A rank does not connect: calls in which others wait for it return an
  /// error, now and later.
  void abandon();
};

} // namespace rota

#endif // ROTA_RUNTIME_COLLECTIVE_NCCL_EMULATEDNCCL_H
