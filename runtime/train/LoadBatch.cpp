// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/LoadBatch.h"

namespace rota {

void loadBatch(Rank &rank, const Batches &batches, Split split, int64_t batch) {
  const Program &program = rank.program();
  std::vector<char> buffers[2];
  auto destination = [&](const DataForm &form, int64_t offset,
                         std::vector<char> &buffer) {
    Part part =
        partOf(form.shape, form.division, program.mesh, rank.coordinates());
    if (offset >= 0)
      buffer.resize(static_cast<size_t>(part.elements() * byteSize(form.type)));
    return Destination{part, offset >= 0 ? buffer.data() : nullptr};
  };
  const Stage &stage = rank.stage();
  Destination input = destination(program.input, stage.inputData, buffers[0]);
  Destination target =
      destination(program.target, stage.targetData, buffers[1]);
  for (int64_t m = 0; m < program.microbatches; ++m) {
    batches.fill(split, batch, m, input, target);
    for (auto [offset, buffer] : {std::pair(stage.inputData, &buffers[0]),
                                  std::pair(stage.targetData, &buffers[1])})
      if (auto bytes = static_cast<int64_t>(buffer->size()); bytes > 0)
        rank.write(*buffer, offset + m * bytes);
  }
}

} // namespace rota
