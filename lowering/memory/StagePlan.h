// SPDX-License-Identifier: Apache-2.0
//
// What the parts of one stage's plan share.
#ifndef ROTA_LOWERING_MEMORY_STAGEPLAN_H
#define ROTA_LOWERING_MEMORY_STAGEPLAN_H

#include "lowering/memory/StaticBlocks.h"

namespace rota::memory {

/// A stage while its actions are planned. `stage.actions` has an entry per
/// action of `row`, with its kind, chunk and microbatch.
struct StagePlan {
  const ModelLayout &layout;
  const ChunkTable &chunks;
  const pipe::Shape &shape;
  const std::vector<pipe::Action> &row;
  int number;
  const StagePlaces &places;
  const Program &program;
  Stage &stage;
  std::string &error;

  bool isLast(int chunk) const { return chunk == shape.chunks() - 1; }

  /// Notes that `action` cannot be planned, unless another could not before.
  void fail(int action, const std::string &what) const {
    const pipe::Action &a = row[action];
    if (error.empty())
      error = "stage " + std::to_string(number) + ": chunk " +
              std::to_string(a.chunk) + ", microbatch " +
              std::to_string(a.microbatch) + ", " +
              toString(ActionKind(a.kind)) + " " + what;
  }
};

} // namespace rota::memory

#endif // ROTA_LOWERING_MEMORY_STAGEPLAN_H
