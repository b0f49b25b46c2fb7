// SPDX-License-Identifier: Apache-2.0
//
// See GradientOrder.h.
#include "passes/pipeline/timeline/GradientOrder.h"

#include <map>
#include <set>

namespace rota::pipe {
namespace {

using Chunks = std::set<int>;

/// The microbatches that have added to one gradient so far.
struct Accumulation {
  int last = -1;
  /// False when `microbatch` comes after a later one.
  bool add(int microbatch) {
    bool ascends = microbatch > last;
    last = microbatch;
    return ascends;
  }
};

/// "chunk 2", or "chunks 0 to 3, 5".
std::string listed(const Chunks &chunks) {
  std::string text = chunks.size() == 1 ? "chunk " : "chunks ";
  for (auto it = chunks.begin(); it != chunks.end();) {
    int first = *it, last = first;
    for (++it; it != chunks.end() && *it == last + 1; ++it)
      ++last;
    text += (first == *chunks.begin() ? "" : ", ") + std::to_string(first);
    if (last > first)
      text += (last == first + 1 ? ", " : " to ") + std::to_string(last);
  }
  return text;
}

} // namespace

std::string reorderedGradients(const Timeline &timeline) {
  std::map<ActionKind, Chunks> reordered;
  for (const std::vector<Action> &row : timeline.ranks) {
    Accumulation embedding;
    // Per row of chunks: a rank has one chunk in each.
    std::vector<Accumulation> weights(timeline.shape.rows() + 1);
    for (const Action &action : row) {
      int chunk = action.chunk, microbatch = action.microbatch;
      ActionKind kind = action.kind;
      bool ascends = true;
      if (makesGradient(kind))
        ascends &= weights[timeline.shape.rowOf(chunk)].add(microbatch);
      if (makesInputGradient(kind) && chunk == 0)
        ascends &= embedding.add(microbatch);
      if (!ascends)
        reordered[kind].insert(chunk);
    }
  }
  std::string text;
  for (const auto &[kind, chunks] : reordered) {
    text += (text.empty() ? "" : ", ") + std::string(toString(kind)) + " of " +
            listed(chunks);
    if (kind == ActionKind::BackwardInput)
      text += " (the embedding)";
  }
  return text;
}

} // namespace rota::pipe
