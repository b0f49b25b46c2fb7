// SPDX-License-Identifier: Apache-2.0
//
// The tensors and values that a rank's memory holds, by name.
#ifndef ROTA_TOOLS_PLANNER_NAMEDUSES_H
#define ROTA_TOOLS_PLANNER_NAMEDUSES_H

#include "tools/compiler/Compile.h"

namespace rota {

/// Bytes of a rank under one name.
struct NamedUse {
  std::string use; // the region of the arena: "optimizer"
  /// "optimizer states of model.layers.{layer}.mlp.up_proj.weight"
  std::string name;
  /// Tensors, values of a layer and microbatch, or blocks; 0: none of these.
  int64_t count = 0;
  int64_t bytes = 0;
};

/// The uses of a rank of `stage`, the largest first; their bytes add up to
/// those of its device. Windows and activations are those of the moment at
/// which they take most, each section of its own. Bytes without a known name
/// have that of their region.
std::vector<NamedUse> namedUses(const Plan &plan, size_t stage);

} // namespace rota

#endif // ROTA_TOOLS_PLANNER_NAMEDUSES_H
