// SPDX-License-Identifier: Apache-2.0
//
// The emulated GPU while a process uses it: its parts, and the functions of the
// driver API that concern several of them.
#ifndef ROTA_RUNTIME_DEVICE_SIMT_EMULATEDCONTEXT_H
#define ROTA_RUNTIME_DEVICE_SIMT_EMULATEDCONTEXT_H

#include "runtime/device/Cores.h"
#include "runtime/device/simt/EmulatedDriver.h"
#include "runtime/device/simt/EmulatedMemory.h"
#include "runtime/device/simt/EmulatedModules.h"
#include "runtime/device/simt/EmulatedStreams.h"
#include "runtime/device/simt/HostCopies.h"

namespace rota::simt {

/// Any thread may call. Functions that return a Result are those of the driver
/// API.
class EmulatedContext {
public:
  explicit EmulatedContext(const EmulatedDriverOptions &options);

  /// Asks the stream for work of the host.
  cuda::Result add(cuda::StreamHandle stream, HostWork work);

  cuda::Result free(cuda::Address address);
  cuda::Result freeHost(void *address);
  cuda::Result unloadModule(cuda::ModuleHandle module);
  cuda::Result allocateInStream(cuda::Address *address, size_t bytes,
                                cuda::StreamHandle stream);
  cuda::Result freeInStream(cuda::Address address, cuda::StreamHandle stream);
  cuda::Result copy(cuda::Address destination, cuda::Address source,
                    size_t bytes, cuda::StreamHandle stream);
  cuda::Result fill8(cuda::Address destination, unsigned char value,
                     size_t count, cuda::StreamHandle stream);
  cuda::Result launch(cuda::FunctionHandle function, unsigned gridX,
                      unsigned gridY, unsigned gridZ, unsigned blockX,
                      unsigned blockY, unsigned blockZ, unsigned sharedBytes,
                      cuda::StreamHandle stream, void **arguments,
                      void **extra);

private:
  /// Whether a copy may use the place: kSuccess, or an error.
  cuda::Result checkPlace(const void *place, size_t bytes);

  Emulator emulator;
  HostCopies hostCopies;
  const RunPieces runPieces; // on the cores

public:
  Cores cores; // cores for kernels and products
  EmulatedMemory memory;
  EmulatedModules modules;
  EmulatedStreams streams; // ends first: its work uses the others
};

/// The context of the calling thread, or null.
std::shared_ptr<EmulatedContext> currentContext();

} // namespace rota::simt

#endif // ROTA_RUNTIME_DEVICE_SIMT_EMULATEDCONTEXT_H
