// SPDX-License-Identifier: Apache-2.0
#include "passes/pipeline/timeline/ChunkParts.h"

#include "passes/pipeline/timeline/LayerSplit.h"

#include <algorithm>

namespace rota::pipe {
namespace {

/// Layers, the embedding and the loss of a pipelined chunk.
struct ChunkItems {
  int64_t layers = 0;
  bool embeds = false, hasLoss = false;

  int64_t count() const { return layers + embeds + hasLoss; }
};

/// The items of each pipelined chunk of a shape without parts.
std::vector<ChunkItems> itemsOf(const Shape &shape,
                                const std::vector<int64_t> &layers) {
  int pipelined = shape.stages * shape.repeats;
  std::vector<ChunkItems> items;
  for (int chunk = 0; chunk < pipelined; ++chunk)
    items.push_back({layers[chunk], chunk == 0,
                     chunk + 1 == pipelined && !shape.hasUnpipelined});
  return items;
}

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
  int64_t most = kMaxActions;
  for (const ChunkItems &items : itemsOf(shape, layers))
    most = std::min(most, items.count());
  return most;
}

std::vector<int64_t> layersOfParts(const Shape &shape,
                                   const std::vector<int64_t> &layers) {
  std::vector<int64_t> result;
  for (const ChunkItems &items : itemsOf(shape, layers)) {
    std::vector<int64_t> least(shape.parts, 1);
    if (items.embeds)
      least.front() = 0;
    if (items.hasLoss)
      least.back() = 0;
    for (int64_t count : splitEvenly(items.layers, least))
      result.push_back(count);
  }
  if (shape.hasUnpipelined)
    result.push_back(layers.back());
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
