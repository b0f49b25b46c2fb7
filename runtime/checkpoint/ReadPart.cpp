// SPDX-License-Identifier: Apache-2.0
#include "runtime/checkpoint/ReadPart.h"
#include "runtime/checkpoint/Safetensors.h"
#include "runtime/program/Convert.h"

#include <algorithm>
#include <cstring>

namespace rota {

static void readRuns(Checkpoint &checkpoint, const SavedTensor &tensor,
                     const SavedPiece &piece, BoxRuns runs, BoxRuns::Run first,
                     char *place) {
  int64_t each = typeBytes(tensor.type);
  std::optional<BoxRuns::Run> run = first;
  auto take = [&](int64_t begin, std::span<const char> block) {
    int64_t at = begin / each;
    int64_t end = at + static_cast<int64_t>(block.size()) / each;
    while (run && run->source < end) {
      int64_t count = std::min(run->count, end - run->source);
      std::memcpy(place + run->target * each,
                  block.data() + (run->source - at) * each,
                  static_cast<size_t>(count * each));
      if (count == run->count) {
        run = runs.next();
        continue;
      }
      run->source += count; // the rest is in the next block
      run->target += count;
      run->count -= count;
    }
  };
  checkpoint.readPiece(tensor, piece, take);
}

void readPart(Checkpoint &checkpoint, const SavedTensor &tensor,
              const Box &part, char *place) {
  for (const SavedPiece &piece : tensor.pieces) {
    BoxRuns runs(boxOf(piece), part);
    if (std::optional<BoxRuns::Run> first = runs.next())
      readRuns(checkpoint, tensor, piece, runs, *first, place);
  }
}

void readFloats(Checkpoint &checkpoint, const SavedTensor &tensor,
                const Box &part, int64_t count, float *place) {
  if (tensor.type == "F32")
    return readPart(checkpoint, tensor, part, reinterpret_cast<char *>(place));
  std::vector<uint16_t> narrow(static_cast<size_t>(count));
  readPart(checkpoint, tensor, part, reinterpret_cast<char *>(narrow.data()));
  std::ranges::transform(narrow, place, fromBf16);
}

} // namespace rota
