// SPDX-License-Identifier: Apache-2.0
#include "passes/pipeline/timeline/ChunkParts.h"

#include "passes/pipeline/timeline/LayerSplit.h"

#include <algorithm>

namespace rota::pipe {
namespace {

class Division {
public:
  Division(const Shape &shape, int parts) : shape(shape), parts(parts) {}

  std::vector<Action> run(const std::vector<Action> &row) const {
    std::vector<Action> result;
    for (size_t i = 0; i < row.size(); ++i) {
      if (row[i].startsPair) {
        addPair(partsOf(row[i]), partsOf(row[i + 1]), result);
        ++i;
        continue;
      }
      for (const Action &part : partsOf(row[i]))
        result.push_back(part);
    }
    return result;
  }

private:
  /// The actions that stand for one, in order. None starts a pair.
  std::vector<Action> partsOf(const Action &action) const {
    Action part = action;
    part.startsPair = false;
    part.chunk *= parts;
    if (shape.isUnpipelined(action.chunk))
      return {part};
    if (!isCompute(action.kind)) {
      // An activation leaves the last part and enters the first, a cotangent
      // the other way round.
      part.chunk +=
          isSend(action.kind) == isForward(action.kind) ? parts - 1 : 0;
      return {part};
    }
    std::vector<Action> list;
    for (int p = 0; p < parts; ++p, ++part.chunk)
      list.push_back(part);
    if (!isForward(action.kind))
      std::reverse(list.begin(), list.end());
    return list;
  }

  /// The halves side by side; the rest of the longer one follows alone.
  static void addPair(const std::vector<Action> &first,
                      const std::vector<Action> &second,
                      std::vector<Action> &result) {
    for (size_t i = 0; i < std::max(first.size(), second.size()); ++i) {
      if (i < first.size())
        result.push_back(first[i]);
      if (i >= second.size())
        continue;
      if (i < first.size())
        result.back().startsPair = true;
      result.push_back(second[i]);
    }
  }

  const Shape &shape;
  const int parts;
};

} // namespace

int64_t mostParts(const Shape &shape, const std::vector<int64_t> &layers) {
  int pipelined = shape.stages * shape.repeats;
  int64_t most = kMaxActions;
  for (int chunk = 0; chunk < pipelined; ++chunk) {
    bool embeds = chunk == 0;
    bool hasLoss = chunk + 1 == pipelined && !shape.hasUnpipelined;
    most = std::min(most, layers[chunk] + embeds + hasLoss);
  }
  return most;
}

std::vector<int64_t> layersOfParts(const Shape &shape,
                                   const std::vector<int64_t> &layers) {
  std::vector<int64_t> least = leastLayers(shape), result;
  auto chunk = layers.begin();
  for (auto part = least.begin(); part != least.end(); part += shape.parts) {
    std::vector<int64_t> counts =
        splitEvenly(*chunk++, {part, part + shape.parts});
    result.insert(result.end(), counts.begin(), counts.end());
  }
  result.insert(result.end(), chunk, layers.end()); // the unpipelined chunk
  return result;
}

Timeline divideChunks(const Timeline &timeline, int parts) {
  Timeline result = timeline;
  result.shape.parts = parts;
  Division division(timeline.shape, parts);
  for (std::vector<Action> &row : result.ranks)
    row = division.run(row);
  return result;
}

} // namespace rota::pipe
