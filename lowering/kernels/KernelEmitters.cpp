// SPDX-License-Identifier: Apache-2.0
//
// The files of kernels in explicit vector code: one line each.
#include "lowering/kernels/KernelPlan.h"

namespace rota::lowering {

using AddEmitters = void(KernelEmitters &emitters);
AddEmitters addAccumulateEmitters, addAttentionEmitters,
    addAttentionGradEmitters, addCrossEntropyEmitters, addDispatchEmitters,
    addEmbeddingEmitters, addExpertRowsEmitters, addGroupedBiasEmitters,
    addLaunchEmitters, addRopeEmitters, addRoutingEmitters, addSplitEmitters;

KernelEmitters vectorEmitters() {
  KernelEmitters emitters;
  for (AddEmitters *add :
       {addAccumulateEmitters, addAttentionEmitters, addAttentionGradEmitters,
        addCrossEntropyEmitters, addDispatchEmitters, addEmbeddingEmitters,
        addExpertRowsEmitters, addGroupedBiasEmitters, addLaunchEmitters,
        addRopeEmitters, addRoutingEmitters, addSplitEmitters})
    add(emitters);
  return emitters;
}

} // namespace rota::lowering
