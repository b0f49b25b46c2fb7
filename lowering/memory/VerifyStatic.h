// SPDX-License-Identifier: Apache-2.0
//
// The plan verifier's checks of what lives as long as the program.
#ifndef ROTA_LOWERING_MEMORY_VERIFYSTATIC_H
#define ROTA_LOWERING_MEMORY_VERIFYSTATIC_H

#include "lowering/memory/Layout.h"

namespace rota::memory {

/// The places of a layer's parameter in a stage (layer -1: of an end), from the
/// updates of all stages.
struct KeptParameter {
  int64_t stored = -1;
  // In the order of Update::gradients: of a parameter that both ends use, that
  // of `embed` comes first.
  std::vector<int64_t> accumulators;
};
/// By parameter, then by layer + 1, as far as the stage has any.
using KeptParameters = std::vector<std::vector<KeptParameter>>;

KeptParameters keptParameters(const Program &program, int stage);

/// Checks the regions and static blocks of a stage. Returns an error, empty
/// when all is well. See PlanVerifier.h.
std::string verifyStatic(const ModelLayout &layout, const Program &program,
                         int stage);

/// The region of that use, or null.
const Region *findRegion(const std::vector<Region> &regions, const char *use);

} // namespace rota::memory

#endif // ROTA_LOWERING_MEMORY_VERIFYSTATIC_H
