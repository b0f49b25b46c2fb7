// SPDX-License-Identifier: Apache-2.0
//
// Kinds of actions, their names and groups. A timeline of the compiler and a
// stage's plan in the compiled program use the same kinds.
#ifndef ROTA_RUNTIME_PROGRAM_ACTION_H
#define ROTA_RUNTIME_PROGRAM_ACTION_H

#include <iterator>
#include <string>

namespace rota {

enum class ActionKind : int {
  Forward,
  Backward,       // input and weight gradient
  BackwardInput,  // input gradient alone
  BackwardWeight, // weight gradient alone
  SendForward,
  RecvForward,
  SendBackward,
  RecvBackward,
  Unshard,    // gathers a chunk's weights into a window
  Reshard,    // frees the window
  ReduceGrad, // reduce-scatters a chunk's gradient
  Offload,    // copies the residuals of an F to host memory
  Fetch,      // copies them back, before the B or I that reads them
  SumGrad,    // sums a chunk's gradient over ranks for the optimizer
  Refresh,    // gathers a chunk's weights that the last step has updated
};

/// The execution of a kind on a rank: compute actions occupy it; sends,
/// receives and transfers run beside the actions after them; a mark takes no
/// time.
enum class ActionGroup { Compute, Send, Receive, Transfer, Mark };

struct ActionKindInfo {
  const char *name; // in the text form, which is PyTorch's
  ActionGroup group;
  bool hasMicrobatch = true; // false: the action is about the whole chunk
};

/// One entry for each ActionKind, in the order of its values.
inline constexpr ActionKindInfo kActionKinds[] = {
    {"F", ActionGroup::Compute},
    {"B", ActionGroup::Compute},
    {"I", ActionGroup::Compute},
    {"W", ActionGroup::Compute},
    {"SEND_F", ActionGroup::Send},
    {"RECV_F", ActionGroup::Receive},
    {"SEND_B", ActionGroup::Send},
    {"RECV_B", ActionGroup::Receive},
    {"UNSHARD", ActionGroup::Transfer, /*hasMicrobatch=*/false},
    {"RESHARD", ActionGroup::Mark, /*hasMicrobatch=*/false},
    {"REDUCE_GRAD", ActionGroup::Transfer, /*hasMicrobatch=*/false},
    {"OFFLOAD", ActionGroup::Transfer},
    {"FETCH", ActionGroup::Transfer},
    {"SUM_GRAD", ActionGroup::Transfer, /*hasMicrobatch=*/false},
    {"REFRESH", ActionGroup::Transfer, /*hasMicrobatch=*/false},
};
inline constexpr int kActionKindCount = std::size(kActionKinds);

constexpr const ActionKindInfo &infoOf(ActionKind kind) {
  return kActionKinds[static_cast<int>(kind)];
}

/// The kind's name in the text form: "F", "SEND_B".
constexpr const char *toString(ActionKind kind) { return infoOf(kind).name; }

constexpr bool isCompute(ActionKind kind) {
  return infoOf(kind).group == ActionGroup::Compute;
}
constexpr bool isSend(ActionKind kind) {
  return infoOf(kind).group == ActionGroup::Send;
}
constexpr bool isReceive(ActionKind kind) {
  return infoOf(kind).group == ActionGroup::Receive;
}
constexpr bool isMessage(ActionKind kind) {
  return isSend(kind) || isReceive(kind);
}
constexpr bool isTransfer(ActionKind kind) {
  return infoOf(kind).group == ActionGroup::Transfer;
}
/// The number of a transfer's kind among the kinds of transfers. Each kind has
/// a stream of its own.
constexpr int transferStream(ActionKind kind) {
  int stream = 0;
  for (int other = 0; other < static_cast<int>(kind); ++other)
    stream += isTransfer(ActionKind(other));
  return stream;
}
inline constexpr int kTransferStreams =
    transferStream(ActionKind(kActionKindCount));

/// True for actions that run beside the actions after them.
constexpr bool isAsynchronous(ActionKind kind) {
  return isMessage(kind) || isTransfer(kind);
}
constexpr bool hasMicrobatch(ActionKind kind) {
  return infoOf(kind).hasMicrobatch;
}
/// True for actions of the forward direction: F and the messages of
/// activations.
constexpr bool isForward(ActionKind kind) {
  return kind == ActionKind::Forward || kind == ActionKind::SendForward ||
         kind == ActionKind::RecvForward;
}
/// True for B and I, which make the gradient of their chunk's input.
constexpr bool makesInputGradient(ActionKind kind) {
  return kind == ActionKind::Backward || kind == ActionKind::BackwardInput;
}
/// True for the kinds that a pair may have: one half is an F, the other one a B
/// or I.
constexpr bool canPair(ActionKind kind, ActionKind other) {
  return (kind == ActionKind::Forward && makesInputGradient(other)) ||
         (other == ActionKind::Forward && makesInputGradient(kind));
}
/// True for B and W, which add to the gradient of their chunk's weights.
constexpr bool makesGradient(ActionKind kind) {
  return kind == ActionKind::Backward || kind == ActionKind::BackwardWeight;
}

/// One entry of a timeline. Text form: `[chunk]KIND[microbatch]`, as `3B0`.
struct Action {
  int chunk = 0;
  ActionKind kind = ActionKind::Forward;
  int microbatch = 0; // 0 where the kind has none
  /// The action is the first half of a pair: it runs at once with the action
  /// after it.
  bool startsPair = false;
  bool operator==(const Action &) const = default;
};

inline std::string toString(const Action &action) {
  std::string text = std::to_string(action.chunk) + toString(action.kind);
  return hasMicrobatch(action.kind) ? text + std::to_string(action.microbatch)
                                    : text;
}

} // namespace rota

#endif // ROTA_RUNTIME_PROGRAM_ACTION_H
