// SPDX-License-Identifier: Apache-2.0
#include "lowering/memory/VerifierState.h"

namespace rota::memory {

VerifierState::VerifierState(const ModelLayout &layout,
                             const ChunkTable &chunks,
                             const pipe::Timeline &timeline,
                             const Program &program, int number,
                             std::string &error)
    : layout(layout), chunks(chunks), shape(timeline.shape),
      row(timeline.ranks[number]), program(program),
      stage(program.stages[number]), number(number), error(error),
      activations(findRegion(stage.regions, "activations")),
      windows(findRegion(stage.regions, "windows")),
      offloaded(findRegion(stage.hostRegions, "offloaded")),
      arena(stage, completed), host(stage, completed) {
  first.push_back(0);
  for (const auto &layers : chunks)
    first.push_back(first.back() + int64_t(layers.size()));
}

std::vector<NamedBlock> VerifierState::blocksOf(int chunk) const {
  std::vector<NamedBlock> blocks;
  if (chunk == 0)
    blocks.push_back({&layout.embed.block, NamedBlock::kEmbed});
  for (const ChunkLayer &l : chunks[chunk])
    blocks.push_back({&layout.kinds[l.kind].block, l.layer});
  if (isLast(chunk))
    blocks.push_back({&layout.loss.block, NamedBlock::kLoss});
  return blocks;
}

void VerifierState::failInside(const Region *region, int64_t offset,
                               int64_t bytes, const Name &name) {
  if (!region)
    return fail("expected a region for " + name.str());
  if (offset % kAlignment != 0)
    return fail("expected " + name.str() + " at a multiple of " +
                std::to_string(kAlignment) + ", got offset " +
                std::to_string(offset));
  fail("expected " + name.str() + " inside the region '" + region->use +
       "', got offset " + std::to_string(offset) + " and " +
       std::to_string(bytes) + " bytes");
}

} // namespace rota::memory
