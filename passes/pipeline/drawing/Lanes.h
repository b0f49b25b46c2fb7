// SPDX-License-Identifier: Apache-2.0
//
// Lanes that pictures, traces and JSON show beside computation.
#ifndef ROTA_PASSES_PIPELINE_DRAWING_LANES_H
#define ROTA_PASSES_PIPELINE_DRAWING_LANES_H

#include "passes/pipeline/timeline/Simulator.h"

namespace rota::pipe {

/// A reason for a rank to wait, and its field of Exposure.
struct ExposureName {
  const char *name;
  double Exposure::*field;
};

inline constexpr ExposureName kExposureNames[] = {
    {"messages", &Exposure::messages},      {"UNSHARD", &Exposure::gathers},
    {"REDUCE_GRAD", &Exposure::reductions}, {"OFFLOAD", &Exposure::offloads},
    {"FETCH", &Exposure::fetches},          {"SUM_GRAD", &Exposure::sums},
    {"REFRESH", &Exposure::refreshes}};

inline const char *waitedFor(const Wait &wait) {
  for (const ExposureName &exposure : kExposureNames)
    if (exposure.field == wait.exposed)
      return exposure.name;
  return "";
}

/// The kinds of transfers, by `transferStream`.
inline std::vector<ActionKind> transferKinds() {
  std::vector<ActionKind> kinds;
  for (int kind = 0; kind < kActionKindCount; ++kind)
    if (isTransfer(ActionKind(kind)))
      kinds.push_back(ActionKind(kind));
  return kinds;
}

} // namespace rota::pipe

#endif // ROTA_PASSES_PIPELINE_DRAWING_LANES_H
