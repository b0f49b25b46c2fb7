// SPDX-License-Identifier: Apache-2.0
//
// The files of GPU kernels: one line each. Attention's are not there yet.
#include "lowering/gpu/GpuEmitters.h"

namespace rota::lowering {

using AddEmitters = void(KernelEmitters &emitters);
AddEmitters addGpuAccumulateEmitters, addGpuLaunchEmitters;

KernelEmitters gpuEmitters() {
  KernelEmitters emitters;
  for (AddEmitters *add : {
           addGpuAccumulateEmitters,
           addGpuLaunchEmitters,
       })
    add(emitters);
  return emitters;
}

} // namespace rota::lowering
