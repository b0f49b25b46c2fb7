// SPDX-License-Identifier: Apache-2.0
//
// Timelines: the order in which each rank runs its actions. Plain data without
// MLIR, so that generators, the verifier, the simulator and the text form can
// be used and tested alone. The pipe dialect wraps a Timeline in an attribute.
#ifndef ROTA_IR_PIPE_TIMELINE_H
#define ROTA_IR_PIPE_TIMELINE_H

#include "runtime/program/Action.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rota::pipe {

using ::rota::Action;
using ::rota::ActionKind;

/// Nothing when `text` is not an action.
std::optional<Action> parseAction(std::string_view text);

/// Which rank owns a chunk. Loop: chunk c on stage c mod S. V: even rows go up,
/// odd rows come back (chunk 2S-1-s on stage s).
enum class Placement { Loop, V };

/// What a timeline is about. Chunk c = r*S + s holds layers [c*L, (c+1)*L).
///
/// The outer chunk, number S*R where there is one, holds the layers that the
/// pipeline leaves out. Every stage has it, and the stages divide its
/// microbatches: m runs on stage m mod S.
struct Shape {
  int stages = 1;       // S: pipeline ranks
  int repeats = 1;      // R: chunks per rank, the outer one not counted
  int microbatches = 1; // M
  Placement placement = Placement::Loop;
  bool outer = false; // there is an outer chunk
  /// With the outer one, which is the last.
  int chunks() const { return stages * repeats + outer; }
  bool isUnpipelined(int chunk) const {
    return outer && chunk == stages * repeats;
  }
  /// The rank that runs `microbatch` of `chunk`. Only for the outer chunk does
  /// it depend on the microbatch.
  int rankOf(int chunk, int microbatch = 0) const;
  /// True when `rank` runs microbatches of `chunk`.
  bool owns(int rank, int chunk) const;
  /// The chunk of `rank` in row `repeat`; the outer chunk in row R.
  int chunkOf(int rank, int repeat) const;
  /// The row of `chunk`: its number among those of a rank.
  int rowOf(int chunk) const { return chunk / stages; }
  /// True when the activation that leaves `chunk` goes to another rank. It
  /// depends on the microbatch for the chunk before the outer one.
  bool sendsForward(int chunk, int microbatch = 0) const;
  /// True when the cotangent that leaves `chunk` goes to another rank. It
  /// depends on the microbatch for the outer chunk.
  bool sendsBackward(int chunk, int microbatch = 0) const;
  /// The chunk that makes the value which a compute action reads: F reads the
  /// activation of the chunk before its own, B and I the gradient of the chunk
  /// behind it. kNoChunk when the action reads none.
  int producerOf(const Action &action) const;
  /// The chunk that reads the value which a compute action makes, or kNoChunk.
  int consumerOf(const Action &action) const;
  bool operator==(const Shape &) const = default;
};
inline constexpr int kNoChunk = -1;

/// What is wrong with the numbers of a shape, empty when nothing is. Each must
/// be positive, S at most kMaxStages and the chunks times M at most
/// kMaxActions; with an outer chunk, M is a multiple of S.
std::string checkShape(const Shape &shape);
inline constexpr int64_t kMaxActions = int64_t(1) << 20;
inline constexpr int kMaxStages = 4096;

/// A list of actions per rank, rows in rank order.
///
/// How a rank runs its row (the compiled program does exactly this; the
/// simulator and the verifier assume it):
/// - RECV posts a place in the rank's arena for one message and never blocks;
///   its chunk is the one that will read the place.
/// - SEND hands a finished message over and never blocks; its chunk is the one
///   that made it. Messages of one channel (source rank, destination rank,
///   direction F or B) match posted places in order; whichever of SEND and RECV
///   comes second copies.
/// - A rank has kOutgoingBuffers buffers per direction for messages that it
///   makes. The j-th compute action that makes one writes buffer j mod
///   kOutgoingBuffers, and so waits for the copy of the message before it
///   there.
/// - A compute action that reads a message waits until it has been copied.
/// - UNSHARD, REDUCE_GRAD, OFFLOAD and FETCH start and go on beside the actions
///   behind them; those of one kind follow each other. F, B, I and W wait for
///   the UNSHARD of their chunk; the first gradient after a REDUCE_GRAD waits
///   for it, since it begins a new sum; FETCH waits for its OFFLOAD, and B, I
///   and W for their FETCH. All end before the step does. RESHARD takes no
///   time, and the end of a row frees what is gathered still.
/// - All ranks of a stage run one row, so that the collectives among them,
/// which
///   are those of UNSHARD and REDUCE_GRAD, come in one order everywhere.
/// Nothing depends on who is faster, so a timeline that completes once always
/// completes, with the same values.
struct Timeline {
  Shape shape;
  std::vector<std::vector<Action>> ranks;
  /// d: a message leaves its rank d - 1 actions after the one that made it, to
  /// travel while the next one computes. 1 or 2 (there are two buffers).
  int delay = 1;
  /// Most chunks that a rank has gathered at a time; 0: no bound.
  int window = 0;
};

inline constexpr int kOutgoingBuffers = 2;

/// True when some rank has a SEND or a RECV.
bool hasCommunication(const Timeline &timeline);

/// True when some rank has an action of `kind`.
bool hasAny(const Timeline &timeline, ActionKind kind);

/// One row per line, actions separated by commas, as PyTorch's
/// torch.distributed.pipelining reads.
std::string printCsv(const std::vector<std::vector<Action>> &ranks);

/// Reads what `printCsv` or PyTorch writes: empty cells (idle slots) are
/// skipped, so are PyTorch's WAIT actions (a rank's buffers imply them), and
/// `(0F7;7B3)OVERLAP_F_B` stands for its parts in order. On failure `error`
/// says line, column and what was found.
std::optional<std::vector<std::vector<Action>>> parseCsv(std::string_view text,
                                                         std::string &error);

/// The smallest shape that holds all actions of `ranks`: as many stages as
/// rows, and the placement that puts the first chunk of the second row where
/// the rows have it. A last chunk on several of them is an outer one.
Shape inferShape(const std::vector<std::vector<Action>> &ranks);

} // namespace rota::pipe

#endif // ROTA_IR_PIPE_TIMELINE_H
