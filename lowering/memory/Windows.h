// SPDX-License-Identifier: Apache-2.0
//
// Where tasks find weights and add gradients: in blocks that live as long as
// the program or, with weights divided over `fsdp`, in windows.
#ifndef ROTA_LOWERING_MEMORY_WINDOWS_H
#define ROTA_LOWERING_MEMORY_WINDOWS_H

#include "lowering/memory/Section.h"
#include "lowering/memory/StagePlan.h"

namespace rota::memory {

/// Plans UNSHARD, RESHARD and REDUCE_GRAD of one stage:
///
///   weights of a chunk's blocks     UNSHARD .. RESHARD
///   gradient of a block             first B or W (I for embed's) after the
///   last
///                                   REDUCE_GRAD .. next REDUCE_GRAD complete
///
/// Weights and gradients have sections of their own, so that a bound on the
/// number of gathered chunks is one on bytes, and equal layers leave no gaps.
class Windows {
public:
  explicit Windows(StagePlan &plan) : plan(plan) {}

  /// Adds transfers, clears, waits and regions to the stage. Where there are no
  /// windows, these actions do nothing. Fails, with the error noted, when an
  /// action finds weights not gathered or a gradient is never reduced.
  bool run();

  /// Where `action`, one of F, B, I and W, finds a block of its chunk; -1 for a
  /// gradient that it does not add to.
  int64_t values(int action, size_t block) const {
    return at(valuesOf[action], block);
  }
  int64_t gradients(int action, size_t block) const {
    return at(gradientsOf[action], block);
  }

  /// The end of what is planned so far.
  int64_t end() const { return endOffset; }

private:
  /// A parameter block of a chunk, and where the stage keeps its parts.
  struct ChunkBlock {
    const ParameterBlock *block;
    const BlockPlace *place;
  };
  /// The windows of one chunk.
  struct Gathered {
    std::vector<ArenaBlock> blocks; // by block; none: not gathered
    int unshard = -1;               // not waited for yet
    int state = -1; // in `states`, of `blocks`; -1: not made yet
  };

  std::vector<ChunkBlock> blocksOf(int chunk) const;
  void useStatic();
  void planWeights();
  void unshard(int action);
  void reshard(int action);
  void useWeights(int action);
  void planGradients();
  void reduce(int action);
  void useGradients(int action);
  int stateOf(Gathered &gathered);
  void addRegion(const char *use, const Section &section);
  int64_t at(int state, size_t block) const { return states[state][block]; }

  StagePlan &plan;
  std::vector<Gathered> chunks;
  Section *section = nullptr; // that is being planned
  // Offsets by block; an action has one for values and one for gradients.
  std::vector<std::vector<int64_t>> states;
  std::vector<int> valuesOf, gradientsOf; // by action, in `states`
  int64_t endOffset = 0;
};

} // namespace rota::memory

#endif // ROTA_LOWERING_MEMORY_WINDOWS_H
