// SPDX-License-Identifier: Apache-2.0
//
// The state that the parts of the plan's verifier share for one stage.
#ifndef ROTA_LOWERING_MEMORY_VERIFIERSTATE_H
#define ROTA_LOWERING_MEMORY_VERIFIERSTATE_H

#include "lowering/memory/ByteNames.h"
#include "lowering/memory/VerifyStatic.h"
#include "runtime/program/Verify.h"

namespace rota::memory {

/// A parameter block of a chunk. Layers have their number; of both ends, the
/// loss's gradients are other sums than embed's.
struct NamedBlock {
  static constexpr int64_t kEmbed = -1, kLoss = -2;
  const ParameterBlock *block;
  int64_t layer; // kEmbed, kLoss or a layer's number
};

struct VerifierState {
  VerifierState(const ModelLayout &layout, const ChunkTable &chunks,
                const pipe::Timeline &timeline, const Program &program,
                int number, std::string &error);

  /// Notes the first error, with stage and action; nothing when it is empty.
  void fail(const std::string &what) {
    if (error.empty() && !what.empty())
      error = (current < 0 ? "stage " + std::to_string(number)
                           : describe(program, number, current)) +
              ": " + what;
  }

  /// Fails unless `name` fits into the region, aligned.
  void inside(const Region *region, int64_t offset, int64_t bytes,
              const Name &name) {
    if (!region || offset < region->offset ||
        offset + bytes > region->offset + region->bytes ||
        offset % kAlignment != 0)
      failInside(region, offset, bytes, name);
  }

  bool isLast(int chunk) const { return chunk == shape.chunks() - 1; }
  const TaskGroup &kindOf(int chunk, size_t layer) const {
    return layout.kinds[chunks[chunk][layer].kind];
  }
  std::vector<NamedBlock> blocksOf(int chunk) const;

  const ModelLayout &layout;
  const ChunkTable &chunks;
  const pipe::Shape &shape;
  const std::vector<Action> &row;
  const Program &program;
  const Stage &stage;
  int number;
  std::string &error;
  const Region *activations, *windows, *offloaded;
  std::vector<int64_t> first; // layers before each chunk; then all
  bool training = true;
  int current = -1; // action
  Completed completed;
  ByteNames arena, host;

private:
  void failInside(const Region *region, int64_t offset, int64_t bytes,
                  const Name &name);
};

} // namespace rota::memory

#endif // ROTA_LOWERING_MEMORY_VERIFIERSTATE_H
