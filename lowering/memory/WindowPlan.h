// SPDX-License-Identifier: Apache-2.0
//
// The places of weights and gradients for tasks: blocks that live as long as
// the program or, with weights divided over `fsdp`, windows.
#ifndef ROTA_LOWERING_MEMORY_WINDOWPLAN_H
#define ROTA_LOWERING_MEMORY_WINDOWPLAN_H

#include "lowering/memory/Section.h"
#include "lowering/memory/StagePlan.h"

namespace rota::memory {

/// Plans UNSHARD, RESHARD and REDUCE_GRAD of one stage:
///
///   weights of a chunk's blocks     UNSHARD .. RESHARD
///   gradient of a block             first B or W (I for embed's) after the
///                                   last REDUCE_GRAD .. next REDUCE_GRAD
///                                   complete
///
/// Weights and gradients share a section: when a chunk's gradient is at its
/// largest, forward's windows are closed. All times are known, so the blocks
/// are packed, which takes a second walk.
class WindowPlan {
public:
  explicit WindowPlan(StagePlan &plan) : plan(plan) {}

  /// Adds waits to the stage's drafts and regions to the stage, and says for
  /// each draft which lists of offsets it uses. Where there are no windows,
  /// these actions do nothing. Fails, with the error noted, when an action
  /// finds weights not gathered or a gradient is never reduced.
  bool run();

  /// A list of offsets by block of a chunk; -1: the block is not there. Equal
  /// lists have one number.
  const std::vector<int64_t> &offsets(int list) const { return *lists[list]; }

  /// The end of what is planned so far.
  int64_t end() const { return endOffset; }

private:
  /// The windows of one chunk, of weights or of gradients.
  struct Gathered {
    std::vector<ArenaBlock> blocks; // by block; none: not gathered
    int unshard = -1;               // not waited for yet
    int list = -1; // the number of their offsets; -1: not known yet
  };

  void useStatic();
  void walk(Section &windows);
  void unshard(int action);
  void reshard(int action);
  void useWeights(int action);
  void checkReduced();
  void reduce(int action);
  void useGradients(int action);
  int numberOf(const std::vector<int64_t> &offsets);
  int numberOf(Gathered &gathered);

  StagePlan &plan;
  std::vector<Gathered> weights, gradients; // by chunk
  Section *section = nullptr;               // the section of this walk
  std::map<std::vector<int64_t>, int> numbers;
  std::vector<const std::vector<int64_t> *> lists; // the keys of `numbers`
  int64_t endOffset = 0;
};

} // namespace rota::memory

#endif // ROTA_LOWERING_MEMORY_WINDOWPLAN_H
