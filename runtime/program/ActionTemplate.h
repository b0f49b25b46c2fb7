// SPDX-License-Identifier: Apache-2.0
//
// The work of actions: their calls and transfers.
#ifndef ROTA_RUNTIME_PROGRAM_ACTIONTEMPLATE_H
#define ROTA_RUNTIME_PROGRAM_ACTIONTEMPLATE_H

#include "runtime/Abi.h"
#include "runtime/program/Action.h"

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace rota {

/// Number of pointers in RotaFrame, in the order of its fields.
inline constexpr int kFrameFields = sizeof(RotaFrame) / sizeof(void *);

/// An offset that depends on the action: `offset` plus `stride` times the
/// action's microbatch, and where there is a slot, plus the offset that the
/// action has in that slot. Without a slot and with the offset -1: none.
struct SlotAddress {
  int slot = -1;
  int64_t offset = -1;
  int64_t stride = 0;

  SlotAddress() = default;
  SlotAddress(int64_t offset) : offset(offset) {} // the same for all actions
  SlotAddress(int slot, int64_t offset) : slot(slot), offset(offset) {}
  bool isNone() const { return slot < 0 && offset < 0; }
  bool operator==(const SlotAddress &) const = default;
};

/// The offset that `address` stands for; -1: none.
inline int64_t resolve(const SlotAddress &address,
                       std::span<const int64_t> slots, int microbatch) {
  int64_t base = 0;
  if (address.slot >= 0)
    base = slots[static_cast<size_t>(address.slot)];
  if (base < 0 || address.isNone())
    return -1;
  return base + address.offset + address.stride * microbatch;
}

/// One call of a task: the address of each field of RotaFrame, in order.
struct Call {
  int task = 0;
  std::array<SlotAddress, kFrameFields> frame;
  int64_t layer = -1; // whose task it is, for messages; -1: of none
  bool operator==(const Call &) const = default;
};

/// The call's frame in one action: offsets in the order of RotaFrame.
using FrameOffsets = std::array<int64_t, kFrameFields>;
FrameOffsets frameOf(const Call &call, std::span<const int64_t> slots,
                     int microbatch);

/// Bytes that an action moves by itself.
struct Transfer {
  int collective = -1; // UNSHARD, REDUCE_GRAD: in Program::collectives
  SlotAddress source, destination;
  int64_t bytes = 0; // OFFLOAD, FETCH: of this copy
};

/// Bytes that an action sets to zero before its calls.
struct Clear {
  int64_t offset = -1, bytes = 0;
};

/// The common part of all actions of one kind and chunk. Its addresses refer to
/// `slotCount` offsets, the places of activations, which each action has of its
/// own. So the calls of a chunk stand once for all its microbatches.
///
/// A compute action clears its places and runs its calls in order. A send
/// starts handing `bytes` at `message` to the rank of stage `peer` with the
/// same other coordinates; a receive posts the place at `message` for the
/// matching send of `peer`. Sends and receives of one direction (rank, peer;
/// forward or backward) match in order; neither ever blocks. A transfer starts
/// its collectives in order (UNSHARD gathers weights, REDUCE_GRAD adds a
/// gradient to the stored part) or its copies (OFFLOAD from the arena to the
/// host arena, FETCH back); transfers of one kind follow each other. RESHARD
/// does nothing.
struct ActionTemplate {
  ActionKind kind = ActionKind::Forward;
  int chunk = 0;
  /// The action and the next compute action are a pair: the calls
  /// of both may run at the same time. They share no bytes that either writes,
  /// and the first waits for all that either needs.
  bool startsPair = false;
  int peer = -1; // a stage
  SlotAddress message;
  int64_t bytes = 0; // size of the message
  // Seconds of its calls, message or transfers on the assumed machine, and the
  // share of its rank's speed that transfers take; 0 where not known.
  double estimate = 0.0, slowsWork = 0.0;
  int slotCount = 0;
  std::vector<Transfer> transfers;
  // Numbers in Stage::updates, for which SUM_GRAD starts Parameter::reduce
  // number `round`, and REFRESH Parameter::refresh.
  std::vector<int> updates;
  int round = 0;
  std::vector<Clear> clears;   // training only
  std::vector<Call> calls;     // training
  std::vector<Call> evalCalls; // validation: the loss value's; then of logits
};

/// One entry of a stage's timeline. Its slots and waits are ranges of the
/// stage's lists.
///
/// Its waits are the earlier asynchronous actions of the stage, by number, that
/// must have completed before the action starts: those whose bytes it reads or
/// overwrites, or, where it is asynchronous itself, that still use its bytes.
/// An evaluation walks the same actions and waits for the same ones, but
/// SEND_B, RECV_B, REDUCE_GRAD, SUM_GRAD, OFFLOAD and FETCH do nothing in it
/// and count as complete; as SUM_GRAD before the last accumulation step, and
/// REFRESH where nothing was updated.
struct PlannedAction {
  int templateNumber = 0; // in Stage::templates
  int microbatch = 0;
  int firstSlot = 0;
  int firstWait = 0, waitCount = 0;
};

} // namespace rota

#endif // ROTA_RUNTIME_PROGRAM_ACTIONTEMPLATE_H
