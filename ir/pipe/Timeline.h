// SPDX-License-Identifier: Apache-2.0
//
// Actions and timelines: when each rank runs what. Plain data without MLIR, so
// that generators, the verifier, the simulator and the text form can be used
// and tested alone; the pipe dialect wraps a Timeline in an attribute.
#ifndef ROTA_IR_PIPE_TIMELINE_H
#define ROTA_IR_PIPE_TIMELINE_H

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rota::pipe {

/// The numbering is that of the compiled program's action table.
enum class ActionKind : int {
  Forward = 0,        // F
  Backward = 1,       // B: input and weight gradient
  BackwardInput = 2,  // I
  BackwardWeight = 3, // W
  SendForward = 4,    // SEND_F
  RecvForward = 5,    // RECV_F
  SendBackward = 6,   // SEND_B
  RecvBackward = 7,   // RECV_B
  Unshard = 8,        // UNSHARD: no microbatch
  Reshard = 9,        // RESHARD: no microbatch
  ReduceGrad = 10,    // REDUCE_GRAD: no microbatch
};

/// One entry of a timeline. Text form: `[chunk]KIND[microbatch]`, as `3B0`.
struct Action {
  int chunk = 0;
  ActionKind kind = ActionKind::Forward;
  int microbatch = 0; // 0 for kinds without one
  bool operator==(const Action &) const = default;
};

/// True for F, B, I and W.
bool isCompute(ActionKind kind);

std::string toString(const Action &action);
/// Nothing when `text` is not an action.
std::optional<Action> parseAction(std::string_view text);

/// Which rank owns a chunk. Loop: chunk c on stage c mod S. V: even rows go up,
/// odd rows come back (chunk 2S-1-s on stage s).
enum class Placement { Loop, V };

/// What a timeline is about. Chunk c = r*S + s holds layers [c*L, (c+1)*L).
struct Shape {
  int stages = 1;       // S: pipeline ranks
  int repeats = 1;      // R: chunks per rank
  int microbatches = 1; // M
  Placement placement = Placement::Loop;
  int chunks() const { return stages * repeats; }
  int rankOf(int chunk) const;
};

/// A list of actions per rank, rows in rank order.
struct Timeline {
  Shape shape;
  std::vector<std::vector<Action>> ranks;
};

} // namespace rota::pipe

#endif // ROTA_IR_PIPE_TIMELINE_H
