// SPDX-License-Identifier: Apache-2.0
//
// Bytes and step time of a model whose chunks have several rematerialization
// policies, from its plans under one policy each: without the compiler, in a
// few milliseconds.
#ifndef ROTA_TOOLS_PLANNER_MIXEDPLANS_H
#define ROTA_TOOLS_PLANNER_MIXEDPLANS_H

#include "lowering/memory/Layout.h"
#include "passes/pipeline/timeline/Simulator.h"

#include <array>
#include <vector>

namespace rota {

/// Input and results of the memory plan under one policy. The chunks, their
/// layers and the order of compute actions do not depend on the policy.
struct PolicyParts {
  memory::ModelLayout
      layout; // its program has the device and the accumulation steps
  memory::ChunkTable chunks;
  pipe::Timeline timeline;
  pipe::CostTable costs; // seconds
};

/// Time and memory of one microbatch of a chunk.
struct ChunkCost {
  std::array<double, 4> compute{};                  // seconds of F, B, I, W
  std::array<double, kTransferStreams> transfers{}; // seconds of each
  int64_t stash = 0;      // bytes from F to B or W, offloaded ones included
  int64_t offloaded = 0;  // stash bytes that may rest in host memory
  int64_t cotangents = 0; // bytes from I to W
  int64_t scratch = 0;    // bytes of the neediest task

  /// Seconds of all compute actions.
  double seconds() const;
  /// Whether neither an action nor a transfer takes longer than in `other`.
  bool isAsFast(const ChunkCost &other) const;
  /// Whether nothing takes more bytes than in `other`.
  bool isAsSmall(const ChunkCost &other) const;
};
ChunkCost costOf(const PolicyParts &parts, int chunk);

/// For each chunk the largest number of microbatches of a rank whose F is done
/// and whose B or W is not.
std::vector<int> mostLive(const pipe::Timeline &timeline);

/// Plans of one model. A policy is the number of its parts.
class MixedPlans {
public:
  /// `parts` is not empty and outlives this object.
  explicit MixedPlans(std::vector<const PolicyParts *> parts);

  const pipe::Shape &shape() const { return parts.front()->timeline.shape; }
  int policies() const { return int(parts.size()); }
  const ChunkCost &costOf(int chunk, int policy) const {
    return costs[policy][chunk];
  }
  /// The largest numbers of live microbatches, by chunk.
  const std::vector<int> &live() const { return liveOf; }

  /// The bytes of each stage's device, the same as those of a plan by the
  /// compiler, where chunk c has the policy `chosen[c]`. Empty: the plan fails.
  std::vector<int64_t> bytes(const std::vector<int> &chosen);
  /// Seconds of a step, likewise.
  double step(const std::vector<int> &chosen) const;

private:
  pipe::Timeline timelineOf(const std::vector<int> &chosen) const;
  int64_t constantBytes(const std::vector<int> &chosen) const;

  std::vector<const PolicyParts *> parts;
  memory::ModelLayout joined;              // the tasks and kinds of all parts
  std::vector<int> firstKind;              // by part, in `joined`
  std::vector<std::vector<bool>> offloads; // by part and chunk: in its timeline
  std::vector<std::vector<ChunkCost>> costs; // by part and chunk
  std::vector<int> liveOf;
};

} // namespace rota

#endif // ROTA_TOOLS_PLANNER_MIXEDPLANS_H
