// SPDX-License-Identifier: Apache-2.0
//
// Timelines: the order in which each rank runs its actions. Plain data without
// MLIR, so that generators, the verifier, the simulator and the text form can
// be used and tested alone. The pipe dialect wraps a Timeline in an attribute.
#ifndef ROTA_IR_PIPE_TIMELINE_H
#define ROTA_IR_PIPE_TIMELINE_H

#include "runtime/program/Action.h"
#include "runtime/text/Names.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rota {
namespace pipe {

using ::rota::Action;
using ::rota::ActionKind;

/// Reads the text form of an action; nothing when `text` has another form.
std::optional<Action> parseAction(std::string_view text);

/// The assignment of chunks to ranks. Loop: chunk c is on stage c mod S. V:
/// even rows of chunks ascend over the stages, odd rows descend (chunk 2S-1-s
/// is on stage s).
enum class Placement { Loop, V };

} // namespace pipe
template <> struct Names<pipe::Placement> {
  static constexpr const char *list[] = {"loop", "v"};
};
namespace pipe {

/// The dimensions of a timeline. Chunk c = r*S + s holds layers [c*L, (c+1)*L).
/// `divide-chunks` divides each chunk into P parts, which follow one another on
/// its rank and are the chunks of the new timeline: part p of chunk c is chunk
/// c*P + p.
///
/// The unpipelined chunk, number S*R*P where there is one, holds the layers
/// that the pipeline leaves out. Every stage has it, and the stages divide its
/// microbatches: m runs on stage m mod S.
struct Shape {
  int stages = 1;       // S: pipeline ranks
  int repeats = 1;      // R: chunks per rank, without the unpipelined one
  int microbatches = 1; // M
  Placement placement = Placement::Loop;
  bool hasUnpipelined = false; // there is an unpipelined chunk
  int parts = 1;               // P: parts of a chunk of the schedule
  /// Chunks per rank, without the unpipelined one.
  int rows() const { return repeats * parts; }
  /// The unpipelined chunk included, which is the last.
  int chunks() const { return stages * rows() + hasUnpipelined; }
  bool isUnpipelined(int chunk) const {
    return hasUnpipelined && chunk == stages * rows();
  }
  /// The rank that runs `microbatch` of `chunk`. It depends on the microbatch
  /// for the unpipelined chunk alone.
  int rankOf(int chunk, int microbatch = 0) const;
  /// True when `rank` runs microbatches of `chunk`.
  bool owns(int rank, int chunk) const;
  /// The chunk of `rank` in row `row`; the unpipelined chunk in row R*P.
  int chunkOf(int rank, int row) const;
  /// The row of `chunk`, which is its number among the chunks of its rank.
  int rowOf(int chunk) const {
    return chunk / (stages * parts) * parts + chunk % parts;
  }
  /// True when the activation that leaves `chunk` goes to another rank. It
  /// depends on the microbatch for the chunk before the unpipelined one.
  bool sendsForward(int chunk, int microbatch = 0) const;
  /// True when the cotangent that leaves `chunk` goes to another rank. It
  /// depends on the microbatch for the unpipelined chunk.
  bool sendsBackward(int chunk, int microbatch = 0) const;
  /// The chunk that makes the value which a compute action reads: F reads the
  /// activation of the chunk before its own, B and I the gradient of the chunk
  /// after it. kNoChunk when the action reads none.
  int producerOf(const Action &action) const;
  /// The chunk that reads the value which a compute action makes, or kNoChunk.
  int consumerOf(const Action &action) const;
  bool operator==(const Shape &) const = default;
};
inline constexpr int kNoChunk = -1;

/// Checks the numbers of a shape; returns an error message, or an empty string.
/// Each must be positive, S at most kMaxStages and the chunks times M at most
/// kMaxActions. With an unpipelined chunk, M is a multiple of S.
std::string checkShape(const Shape &shape);
inline constexpr int64_t kMaxActions = int64_t(1) << 20;
inline constexpr int kMaxStages = 4096;

/// A list of actions for each rank, in rank order.
using ActionRows = std::vector<std::vector<Action>>;

/// The rows, and the rules by which they run.
///
/// Execution of a row, as the compiled program does it and as the simulator and
/// the verifier assume it:
/// - RECV posts a place in the rank's arena for one message and does not block.
///   Its chunk is the one that reads the message.
/// - SEND offers a finished message and does not block. Its chunk is the one
///   that made the message. Messages of one channel (source rank, destination
///   rank, direction F or B) match posted places in order. The later of SEND
///   and RECV starts the copy.
/// - A rank has kOutgoingBuffers buffers per direction for messages that it
///   makes. The j-th compute action that makes one writes buffer j mod
///   kOutgoingBuffers, and waits for the copy of the previous message in that
///   buffer.
/// - A compute action that reads a message waits until it has been copied.
/// - UNSHARD, REDUCE_GRAD, OFFLOAD, FETCH, SUM_GRAD and REFRESH run beside the
///   actions after them; transfers of one kind run one after the other. F, B, I
///   and W wait for the UNSHARD of their chunk. The first gradient after a
///   REDUCE_GRAD begins a new sum, and waits for the REDUCE_GRAD. FETCH waits
///   for its OFFLOAD; B, I and W wait for their FETCH. SUM_GRAD, which sums the
///   chunk's gradient over ranks that hold the same parameters, waits for the
///   REDUCE_GRADs and SUM_GRADs of its chunk. REFRESH gathers what the ranks
///   have updated, each its part, at the end of the step before; UNSHARD, F, B,
///   I and W wait for that of their chunk. All transfers end before the step
///   ends, and updates come after.
///   RESHARD takes no time. The end of a row frees the weights that are still
///   gathered.
/// - A pair is an F and a B or I that stand side by side, in any order. It
///   starts when both could start, and both end when it ends. What its halves
///   need stands before both, what they cause after both.
/// - All ranks of a stage run the same row, so the collectives of UNSHARD,
///   REDUCE_GRAD, SUM_GRAD and REFRESH have the same order on all of them.
/// The result does not depend on the relative speed of the ranks: a timeline
/// that completes once always completes, with the same values.
struct Timeline {
  Shape shape;
  ActionRows ranks;
  /// d: SEND stands d - 1 actions after the action that made the message, so
  /// with 2 the message travels while its rank computes. 1 or 2, since there
  /// are two buffers.
  int delay = 1;
  /// The largest number of chunks that a rank has gathered at a time; 0: no
  /// bound.
  int window = 0;
};

inline constexpr int kOutgoingBuffers = 2;

/// True when some rank has a SEND or a RECV.
bool hasCommunication(const Timeline &timeline);

/// True when some rank has an action of `kind`.
bool hasAny(const Timeline &timeline, ActionKind kind);

/// True when some rank has a pair.
bool hasPairs(const Timeline &timeline);

/// The halves of pairs follow one another from now on.
void dropPairs(Timeline &timeline);

/// True when the action at `position` of `row` is the second half of a pair.
inline bool endsPair(const std::vector<Action> &row, size_t position) {
  return position > 0 && row[position - 1].startsPair;
}

/// True when it is the F of a pair.
inline bool isPairedForward(const std::vector<Action> &row, size_t position) {
  return row[position].kind == ActionKind::Forward &&
         (row[position].startsPair || endsPair(row, position));
}

/// The text of an action of a row in the CSV form, with its part of a pair's
/// text: "(0F7", ";7B3)OVERLAP_F_B".
std::string textOf(const std::vector<Action> &row, size_t position);

/// The CSV form of torch.distributed.pipelining: a line for each row, actions
/// separated by commas, pairs as `(0F7;7B3)OVERLAP_F_B`.
std::string printCsv(const ActionRows &ranks);

/// Reads the CSV form of `printCsv` and PyTorch. Empty cells (idle slots) and
/// PyTorch's WAIT actions (a rank's buffers imply them) are skipped. On failure
/// `error` has line, column and the text that was found.
std::optional<ActionRows> parseCsv(std::string_view text, std::string &error);

/// The smallest shape that holds all actions of `ranks`: as many stages as
/// rows, and the placement that agrees with the rank of the first chunk of the
/// second row. A last chunk that several rows have is an unpipelined one.
Shape inferShape(const ActionRows &ranks);

} // namespace pipe
} // namespace rota

#endif // ROTA_IR_PIPE_TIMELINE_H
