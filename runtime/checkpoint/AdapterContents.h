// SPDX-License-Identifier: Apache-2.0
//
// Low-rank adapters as PEFT writes them, and weights to which they are added.
#ifndef ROTA_RUNTIME_CHECKPOINT_ADAPTERCONTENTS_H
#define ROTA_RUNTIME_CHECKPOINT_ADAPTERCONTENTS_H

#include "runtime/checkpoint/HubContents.h"

namespace rota {

struct AdapterFacts {
  int64_t rank = 1;
  double alpha = 1;
  std::vector<std::string> targets;
  std::string base; // where the weights are to which it adds; empty: unknown

  double scale() const { return alpha / static_cast<double>(rank); }
};

/// The adapters that a run trained; none where it trained the whole model.
std::optional<AdapterFacts> adaptersOf(const Manifest &manifest);

/// Leaves the adapters alone, under PEFT's names, with the configuration that
/// PEFT reads.
void keepAdapters(HubContents &contents, const AdapterFacts &facts);

/// Adds the tensors of a file of adapters, under the names that a checkpoint
/// has. `tensors` must outlive the contents. Throws InputError.
void addAdapters(HubContents &contents, const HubTensors &tensors);

/// Adds `scale` * B A to the weight of each adapter and removes the adapter. A
/// merged weight that had another type is of the contents' type. Throws
/// InputError where a weight is missing or has another shape.
void mergeAdapters(HubContents &contents, double scale);

} // namespace rota

#endif // ROTA_RUNTIME_CHECKPOINT_ADAPTERCONTENTS_H
