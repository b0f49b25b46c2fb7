// SPDX-License-Identifier: Apache-2.0
//
// Walks each row once. A rank has one chunk in each row of chunks, so a chunk's
// state on its rank is kept by its row.
#include "passes/pipeline/timeline/WindowVerifier.h"

namespace rota::pipe {
namespace {

constexpr int kNone = -1;

class RowVerifier {
public:
  RowVerifier(const Timeline &timeline, int rank, bool gathers, bool reduces,
              std::vector<Violation> &violations)
      : timeline(timeline), shape(timeline.shape), rank(rank), gathers(gathers),
        reduces(reduces), violations(violations), chunks(shape.rows() + 1),
        pairs(chunks.size() * shape.microbatches) {}

  void run() {
    const std::vector<Action> &row = timeline.ranks[rank];
    for (position = 0; position < int(row.size()); ++position)
      check(row[position]);
    for (const ChunkState &chunk : chunks)
      if (reduces && chunk.gradient != kNone)
        report(chunk.gradient, "expected a REDUCE_GRAD of the chunk after it");
    for (const PairState &pair : pairs)
      if (pair.isAway)
        report(pair.offload, "expected a FETCH of the residuals after it");
  }

private:
  struct ChunkState {
    int unshard = kNone;  // position of the UNSHARD, while the window is open
    bool isUsed = false;  // since then
    int gradient = kNone; // position of the last one that is not reduced
    int lastGradient = kNone; // position of the last one so far
    int sum = kNone;          // position of the first SUM_GRAD
    bool isRefreshed = false;
    bool isRead = false; // used or gathered so far
  };
  struct PairState {
    int offload = kNone;                        // position
    bool isAway = false;                        // offloaded and not fetched
    bool isForward = false, isBackward = false; // F, and B or I, are done
  };

  const Timeline &timeline;
  const Shape &shape;
  int rank, position = 0;
  bool gathers, reduces;
  std::vector<Violation> &violations;
  std::vector<ChunkState> chunks; // per row of chunks
  std::vector<PairState> pairs;   // per row of chunks and microbatch
  int open = 0;

  void report(int at, std::string rule) {
    violations.push_back(
        {rank, at, toString(timeline.ranks[rank][at]), std::move(rule)});
  }

  PairState &pairOf(const Action &action) {
    size_t row = shape.rowOf(action.chunk);
    return pairs[row * shape.microbatches + action.microbatch];
  }

  void check(const Action &action) {
    ChunkState &chunk = chunks[shape.rowOf(action.chunk)];
    switch (action.kind) {
    case ActionKind::Unshard:
      return checkUnshard(chunk);
    case ActionKind::Reshard:
      return checkReshard(chunk);
    case ActionKind::ReduceGrad:
      if (chunk.gradient == kNone)
        report(position, "there is no gradient to reduce");
      chunk.gradient = kNone;
      return checkUnsummed(chunk);
    case ActionKind::SumGrad:
      return checkSum(chunk);
    case ActionKind::Refresh:
      if (chunk.isRefreshed || chunk.isRead)
        report(position, "expected one REFRESH of the chunk, before all uses "
                         "and gathers of its weights");
      chunk.isRefreshed = true;
      return;
    case ActionKind::Offload:
      return checkOffload(pairOf(action));
    case ActionKind::Fetch:
      return checkFetch(pairOf(action));
    default:
      if (isCompute(action.kind))
        checkUse(action, chunk, pairOf(action));
    }
  }

  /// An action that adds to the chunk's gradient.
  void checkUnsummed(const ChunkState &chunk) {
    if (chunk.sum != kNone)
      report(position, "expected it before the chunk's SUM_GRAD at position " +
                           std::to_string(chunk.sum));
  }

  void checkSum(ChunkState &chunk) {
    if (chunk.lastGradient == kNone)
      report(position, "there is no gradient to sum");
    else if (reduces && chunk.gradient != kNone)
      report(position, "expected a REDUCE_GRAD of the chunk before it");
    if (chunk.sum == kNone)
      chunk.sum = position;
  }

  void checkUnshard(ChunkState &chunk) {
    chunk.isRead = true;
    if (chunk.unshard != kNone)
      return report(position, "the chunk's window is open already");
    chunk.unshard = position;
    chunk.isUsed = false;
    if (++open <= timeline.window || timeline.window == 0)
      return;
    std::string others;
    for (const ChunkState &other : chunks)
      if (other.unshard != kNone && &other != &chunk)
        others += (others.empty() ? "" : ", ") +
                  toString(timeline.ranks[rank][other.unshard]);
    report(position, "expected at most " + std::to_string(timeline.window) +
                         " open windows, got " + std::to_string(open) +
                         ": open are those of " + others);
  }

  void checkReshard(ChunkState &chunk) {
    if (chunk.unshard == kNone)
      return report(position, "the chunk has no open window");
    if (!chunk.isUsed)
      report(chunk.unshard,
             "expected a use of the weights before the RESHARD at position " +
                 std::to_string(position));
    chunk.unshard = kNone;
    --open;
  }

  void checkUse(const Action &action, ChunkState &chunk, PairState &pair) {
    if (gathers && chunk.unshard == kNone)
      report(position, "expected an open window of the chunk's weights");
    chunk.isUsed = chunk.isRead = true;
    if (makesGradient(action.kind)) {
      chunk.gradient = chunk.lastGradient = position;
      checkUnsummed(chunk);
    }
    if (action.kind == ActionKind::Forward)
      pair.isForward = true;
    else if (pair.isAway)
      report(position, "expected a FETCH of the residuals, which are offloaded "
                       "at position " +
                           std::to_string(pair.offload));
    else
      pair.isBackward = true;
  }

  void checkOffload(PairState &pair) {
    if (!pair.isForward || pair.isBackward)
      report(position, "expected it after the F and before the backward of "
                       "its chunk and microbatch");
    pair.offload = position;
    pair.isAway = true;
  }

  void checkFetch(PairState &pair) {
    if (!pair.isAway)
      report(position, "expected an OFFLOAD of the residuals before it");
    pair.isAway = false;
  }
};

} // namespace

std::vector<Violation> verifyWindows(const Timeline &timeline) {
  std::vector<Violation> violations;
  if (timeline.window < 0)
    violations.push_back({-1, -1, "",
                          "expected a window of at least 1 chunk, or 0 for no "
                          "bound, got " +
                              std::to_string(timeline.window)});
  bool gathers = hasAny(timeline, ActionKind::Unshard);
  bool reduces = hasAny(timeline, ActionKind::ReduceGrad);
  for (size_t rank = 0; rank < timeline.ranks.size(); ++rank)
    RowVerifier(timeline, int(rank), gathers, reduces, violations).run();
  return violations;
}

} // namespace rota::pipe
