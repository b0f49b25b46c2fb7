// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/Data.h"
#include "runtime/data/DocumentPositions.h"

#include <utility>

namespace rota {

BatchReader::BatchReader(const Rank &rank, const Batches &batches)
    : batches(batches), microbatches(rank.program().microbatches),
      sequences(rank.program().input.shape[0]),
      input(sideOf(rank, rank.program().input, rank.stage().inputData)),
      target(sideOf(rank, rank.program().target, rank.stage().targetData)),
      positions(
          sideOf(rank, rank.program().positions, rank.stage().positionData)),
      documentEnd(rank.program().documentEnd) {}

BatchReader::Side BatchReader::sideOf(const Rank &rank, const DataForm &form,
                                      int64_t offset) {
  Part part = partOf(form.shape, form.division, rank.program().mesh,
                     rank.coordinates());
  int64_t bytes = offset >= 0 ? part.elements() * byteSize(form.type) : 0;
  return {std::move(part), bytes};
}

/// Reads the positions in documents of the whole microbatch that begins with
/// sequence `first`: a token's is found from all tokens before it.
void BatchReader::readPositions(Split split, int64_t first,
                                int32_t *out) const {
  batches.fill(split, first, {positions.part, reinterpret_cast<char *>(out)},
               {});
  const std::vector<int64_t> &size = positions.part.size;
  for (int64_t s = 0; s < size[0]; ++s)
    findDocumentPositions({out + s * size[1], static_cast<size_t>(size[1])},
                          documentEnd);
}

BatchReader::Parts BatchReader::read(Split split, int64_t first) const {
  Parts parts;
  parts.input.resize(static_cast<size_t>(microbatches * input.bytes));
  parts.target.resize(static_cast<size_t>(microbatches * target.bytes));
  auto place = [](const Side &side, std::vector<char> &bytes, int64_t m) {
    return Destination{side.part, side.bytes > 0 ? bytes.data() + m * side.bytes
                                                 : nullptr};
  };
  if (input.bytes + target.bytes > 0)
    for (int64_t m = 0; m < microbatches; ++m)
      batches.fill(split, first + m * sequences, place(input, parts.input, m),
                   place(target, parts.target, m));
  parts.positions.resize(static_cast<size_t>(microbatches * positions.bytes));
  if (positions.bytes > 0)
    for (int64_t m = 0; m < microbatches; ++m)
      readPositions(split, first + m * sequences,
                    reinterpret_cast<int32_t *>(parts.positions.data() +
                                                m * positions.bytes));
  return parts;
}

static void write(Rank &rank, const BatchReader::Parts &parts) {
  if (!parts.input.empty())
    rank.write(parts.input, rank.stage().inputData);
  if (!parts.target.empty())
    rank.write(parts.target, rank.stage().targetData);
  if (!parts.positions.empty())
    rank.write(parts.positions, rank.stage().positionData);
}

BatchLoader::BatchLoader(Rank &rank, const Batches &batches,
                         ReadAhead &readAhead)
    : rank(rank), readAhead(readAhead),
      reader(std::make_shared<BatchReader>(rank, batches)) {}

void BatchLoader::load(int64_t first) {
  bool isReady = std::exchange(nextFirst, -1) == first;
  write(rank, isReady ? next.get() : reader->read(Split::Train, first));
  nextFirst = first + rank.program().timelineSequences();
  next = readAhead.start([reader = reader, first = nextFirst] {
    return reader->read(Split::Train, first);
  });
}

void loadAccumulationStep(Rank &rank, const Batches &batches, Split split,
                          int64_t first) {
  write(rank, BatchReader(rank, batches).read(split, first));
}

} // namespace rota
