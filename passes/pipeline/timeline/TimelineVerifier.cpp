// SPDX-License-Identifier: Apache-2.0
//
// The verifier and the generators share the arithmetic of shapes alone. This
// file has the rules about computation and messages in single rows,
// WindowVerifier.cpp those about weights, gradients and residuals, and
// DeadlockVerifier.cpp those about several ranks at once.
#include "passes/pipeline/timeline/TimelineVerifier.h"

#include "passes/pipeline/timeline/DeadlockVerifier.h"
#include "passes/pipeline/timeline/WindowVerifier.h"
#include "runtime/text/Text.h"

#include <algorithm>
#include <optional>

namespace rota::pipe {
namespace {

constexpr int kAbsent = -1;

/// Calls `function` with the rank, the position and the action of each.
template <typename Function>
void forEachAction(const Timeline &timeline, Function function) {
  for (size_t rank = 0; rank < timeline.ranks.size(); ++rank)
    for (size_t i = 0; i < timeline.ranks[rank].size(); ++i)
      function(int(rank), int(i), timeline.ranks[rank][i]);
}

/// One error, at the largest number, where chunks or microbatches have no
/// action: one wrong number in a file makes its shape larger.
std::optional<Violation> findUnused(const Timeline &timeline, const char *what,
                                    const char *plural, int count,
                                    int Action::*number) {
  std::vector<bool> isUsed(count);
  std::optional<Violation> found;
  int largest = -1;
  forEachAction(timeline, [&](int rank, int position, const Action &action) {
    if (!hasMicrobatch(action.kind))
      return;
    isUsed[action.*number] = true;
    if (action.*number <= largest)
      return;
    largest = action.*number;
    found = Violation{rank, position, toString(action), ""};
  });
  auto unused = std::find(isUsed.begin(), isUsed.end(), false);
  if (!found || unused == isUsed.end())
    return std::nullopt;
  found->rule = "expected actions of " + counted(count, what, plural) +
                ", got none of " + what + " " +
                std::to_string(unused - isUsed.begin());
  return found;
}

class OrderVerifier {
public:
  explicit OrderVerifier(const Timeline &timeline)
      : timeline(timeline), shape(timeline.shape),
        communicates(hasCommunication(timeline)) {}

  std::vector<Violation> run() {
    if (checkRows() && checkPlaces() && checkOnce()) {
      checkOrder();
      checkPairs();
      std::vector<Violation> ofWindows = verifyWindows(timeline);
      violations.insert(violations.end(), ofWindows.begin(), ofWindows.end());
      if (violations.empty())
        violations = verifyProgress(timeline);
    }
    return std::move(violations);
  }

private:
  const Timeline &timeline;
  const Shape &shape;
  bool communicates;
  std::vector<Violation> violations;
  // Position of each (kind, chunk, microbatch) in its rank's row.
  std::vector<int> positions;

  void report(int rank, int position, const Action &action, std::string rule) {
    violations.push_back({rank, position, toString(action), std::move(rule)});
  }

  int &positionOf(ActionKind kind, int chunk, int microbatch) {
    size_t chunkKind =
        size_t(chunk) * kActionKindCount + static_cast<int>(kind);
    return positions[chunkKind * shape.microbatches + microbatch];
  }

  bool checkRows() {
    std::string error = checkShape(shape);
    if (error.empty() && timeline.ranks.size() != size_t(shape.stages))
      error = "expected " + counted(shape.stages, "row") +
              ", one for each stage, got " +
              std::to_string(timeline.ranks.size());
    if (error.empty() &&
        (timeline.delay < 1 || timeline.delay > kOutgoingBuffers))
      error =
          "expected a delay of 1 or 2, got " + std::to_string(timeline.delay);
    if (!error.empty())
      violations.push_back({-1, -1, "", error});
    return error.empty();
  }

  bool isPlaced(int rank, const Action &action) const {
    return hasMicrobatch(action.kind)
               ? shape.rankOf(action.chunk, action.microbatch) == rank
               : shape.owns(rank, action.chunk);
  }

  /// "chunk 3", or "microbatch 1 of chunk 4" where the stages divide a chunk.
  std::string placeOf(const Action &action) const {
    std::string text = "chunk " + std::to_string(action.chunk);
    return shape.isUnpipelined(action.chunk)
               ? "microbatch " + std::to_string(action.microbatch) + " of " +
                     text
               : text;
  }

  bool checkPlaces() {
    forEachAction(timeline, [&](int rank, int position, const Action &action) {
      auto range = [&](const char *what, int value, int count) {
        if (value >= 0 && value < count)
          return true;
        report(rank, position, action,
               std::string("expected a ") + what + " below " +
                   std::to_string(count) + ", got " + std::to_string(value));
        return false;
      };
      if (range("chunk", action.chunk, shape.chunks()) &&
          range("microbatch", action.microbatch, shape.microbatches) &&
          !isPlaced(rank, action))
        report(
            rank, position, action,
            placeOf(action) + " belongs to rank " +
                std::to_string(shape.rankOf(action.chunk, action.microbatch)));
    });
    return violations.empty();
  }

  bool checkOnce() {
    positions.assign(size_t(shape.chunks()) * kActionKindCount *
                         shape.microbatches,
                     kAbsent);
    forEachAction(timeline, [&](int rank, int position, const Action &action) {
      if (!hasMicrobatch(action.kind))
        return;
      int &first = positionOf(action.kind, action.chunk, action.microbatch);
      if (first == kAbsent)
        first = position;
      else
        report(rank, position, action,
               "expected the action once, it is at position " +
                   std::to_string(first) + " already");
    });
    if (checkUsed("chunk", "s", shape.chunks(), &Action::chunk) &&
        checkUsed("microbatch", "es", shape.microbatches, &Action::microbatch))
      for (int chunk = 0; chunk < shape.chunks(); ++chunk)
        for (int m = 0; m < shape.microbatches; ++m)
          checkPresent(chunk, m);
    return violations.empty();
  }

  bool checkUsed(const char *what, const char *plural, int count,
                 int Action::*number) {
    std::optional<Violation> unused =
        findUnused(timeline, what, plural, count, number);
    if (unused)
      violations.push_back(std::move(*unused));
    return !unused;
  }

  void checkPresent(int chunk, int m) {
    auto at = [&](ActionKind kind) { return positionOf(kind, chunk, m); };
    auto missing = [&](ActionKind kind, const char *why) {
      if (at(kind) == kAbsent)
        report(shape.rankOf(chunk, m), -1, {chunk, kind, m},
               std::string("missing: ") + why);
    };
    auto needless = [&](ActionKind kind, const char *why) {
      if (at(kind) != kAbsent)
        report(shape.rankOf(chunk, m), at(kind), {chunk, kind, m}, why);
    };
    missing(ActionKind::Forward, "each chunk runs F once for each microbatch");
    bool input = at(ActionKind::BackwardInput) != kAbsent;
    bool weight = at(ActionKind::BackwardWeight) != kAbsent;
    if (at(ActionKind::Backward) != kAbsent) {
      needless(ActionKind::BackwardInput, "B computes the input gradient too");
      needless(ActionKind::BackwardWeight,
               "B computes the weight gradient too");
    } else if (!input && !weight) {
      missing(ActionKind::Backward,
              "each chunk runs B, or I and W, once for each microbatch");
    } else {
      missing(ActionKind::BackwardInput, "its W is there");
      missing(ActionKind::BackwardWeight, "its I is there");
    }
    auto transfer = [&](ActionKind kind, bool crosses, const char *neighbour) {
      if (!crosses)
        needless(kind, neighbour);
      else if (communicates)
        missing(kind, "the value crosses ranks");
    };
    transfer(ActionKind::SendForward, shape.sendsForward(chunk, m),
             "no other rank reads the chunk's output");
    transfer(ActionKind::RecvForward,
             chunk > 0 && shape.sendsForward(chunk - 1, m),
             "no other rank makes the chunk's input");
    transfer(ActionKind::SendBackward, shape.sendsBackward(chunk, m),
             "no other rank reads the chunk's input gradient");
    transfer(ActionKind::RecvBackward,
             chunk + 1 < shape.chunks() && shape.sendsBackward(chunk + 1, m),
             "no other rank makes the chunk's output gradient");
  }

  /// The kind of the action that makes the input gradient.
  ActionKind inputKind(int chunk, int m) {
    return positionOf(ActionKind::Backward, chunk, m) != kAbsent
               ? ActionKind::Backward
               : ActionKind::BackwardInput;
  }

  void checkPairs() {
    forEachAction(timeline, [&](int rank, int position, const Action &action) {
      const std::vector<Action> &row = timeline.ranks[rank];
      if (!action.startsPair)
        return;
      if (position + 1 == int(row.size()))
        return report(rank, position, action,
                      "expected the other half of its pair after it");
      const Action &other = row[position + 1];
      if (!canPair(action.kind, other.kind) || other.startsPair)
        report(rank, position, action,
               "expected a pair of an F and a B or I, got " + toString(action) +
                   " and " + toString(other));
      else if (action.microbatch == other.microbatch)
        report(rank, position, action,
               "expected a pair of two microbatches, as the backwards of one "
               "wait for its forwards, got " +
                   toString(action) + " and " + toString(other));
    });
  }

  void checkOrder() {
    forEachAction(timeline, [&](int rank, int position, const Action &action) {
      int chunk = action.chunk, m = action.microbatch;
      auto after = [&](ActionKind kind, int otherChunk) {
        if (otherChunk < 0 || otherChunk >= shape.chunks() ||
            shape.rankOf(otherChunk, m) != rank)
          return;
        int other = positionOf(kind, otherChunk, m);
        if (other > position)
          report(rank, position, action,
                 "expected it after " + toString({otherChunk, kind, m}) +
                     ", which is at position " + std::to_string(other));
      };
      switch (action.kind) {
      case ActionKind::Forward:
        after(ActionKind::Forward, chunk - 1);
        if (communicates && chunk > 0 && shape.sendsForward(chunk - 1, m))
          after(ActionKind::RecvForward, chunk);
        return;
      case ActionKind::Backward:
      case ActionKind::BackwardInput:
        after(ActionKind::Forward, chunk);
        if (chunk + 1 == shape.chunks())
          return;
        after(inputKind(chunk + 1, m), chunk + 1);
        if (communicates && shape.sendsBackward(chunk + 1, m))
          after(ActionKind::RecvBackward, chunk);
        return;
      case ActionKind::BackwardWeight:
        return after(ActionKind::BackwardInput, chunk);
      case ActionKind::SendForward:
        return after(ActionKind::Forward, chunk);
      case ActionKind::SendBackward:
        return after(inputKind(chunk, m), chunk);
      default:
        return;
      }
    });
  }
};

} // namespace

std::string Violation::str() const {
  std::string text;
  auto add = [&](const std::string &part) {
    if (!part.empty())
      text += (text.empty() ? "" : ", ") + part;
  };
  add(rank >= 0 ? "rank " + std::to_string(rank) : "");
  add(position >= 0 ? "position " + std::to_string(position) : "");
  add(action);
  return text.empty() ? rule : text + ": " + rule;
}

std::vector<Violation> verifyTimeline(const Timeline &timeline) {
  return OrderVerifier(timeline).run();
}

} // namespace rota::pipe
