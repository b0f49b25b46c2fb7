// SPDX-License-Identifier: Apache-2.0
//
// Walks a stage's timeline and opens and closes the blocks of activations.
#include "lowering/memory/Activations.h"
#include "lowering/memory/ActionTemplates.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace rota::memory {
namespace {

/// The blocks of a stage for one chunk and microbatch.
struct HeldActivations {
  ArenaBlock input;           // input of the chunk's first layer
  ArenaBlock stash;           // inputs of its other layers, residuals of all
  ArenaBlock offloaded;       // part of the stash that may rest on the host
  ArenaBlock host, hostInput; // copies of it and the input
  ArenaBlock output;          // output of the last layer, which the loss reads
  ArenaBlock cotangent;       // cotangent of the chunk's output
  ArenaBlock cotangentStash;  // kept from I to W
  int inputFrom = -1, cotangentFrom = -1; // the RECV actions; -1: made here
  int offloadedBy = -1, fetchedBy = -1;   // the OFFLOAD and FETCH actions
};

/// The buffers of messages that leave in one direction. A message has the
/// number of its chunk and microbatch.
class OutgoingBuffers {
public:
  void open(Section &section, int64_t bytes) {
    std::vector<int> none; // nothing was here before
    for (Buffer &buffer : buffers)
      buffer.offset =
          section.open(bytes, {BlockUse::Messages, -1}, none).offset;
  }

  /// The buffer for the next message. Adds to `waits` the SEND that may still
  /// read it. Nothing when it holds a message that has not been sent.
  std::optional<int64_t> write(size_t message, std::vector<int> &waits) {
    int number = made++ % pipe::kOutgoingBuffers;
    Buffer &buffer = buffers[number];
    if (std::exchange(buffer.isFull, true))
      return std::nullopt;
    if (buffer.sentBy >= 0)
      waits.push_back(buffer.sentBy);
    numbers[message] = number;
    return buffer.offset;
  }

  /// The buffer of a message, which the action `send` reads. Nothing when it
  /// has not been made.
  std::optional<int64_t> send(size_t message, int send) {
    auto found = numbers.find(message);
    if (found == numbers.end())
      return std::nullopt;
    Buffer &buffer = buffers[found->second];
    numbers.erase(found);
    buffer.sentBy = send;
    buffer.isFull = false;
    return buffer.offset;
  }

private:
  struct Buffer {
    int64_t offset = -1;
    int sentBy = -1; // the SEND that last read it
    bool isFull = false;
  };
  Buffer buffers[pipe::kOutgoingBuffers];
  int made = 0;                  // messages so far
  std::map<size_t, int> numbers; // by buffers of messages not yet sent
};

/// The slots that B, I and W have in common.
std::vector<int64_t> heldSlots(const HeldActivations &h) {
  return {h.input.offset, h.stash.offset, h.offloaded.offset, h.output.offset,
          h.cotangentStash.offset};
}

/// True when the stage has an action of `kind`.
bool has(const StagePlan &plan, ActionKind kind) {
  return std::any_of(plan.row.begin(), plan.row.end(),
                     [&](const Action &a) { return a.kind == kind; });
}

/// Bytes of a block of one microbatch of the chunk.
int64_t bytesOf(const StagePlan &plan, BlockUse use, int chunk) {
  const StashLayout &stashes = plan.stashes[chunk];
  switch (use) {
  case BlockUse::Residuals:
    return stashes.stashBytes;
  case BlockUse::Offloaded:
    return stashes.offloadedBytes;
  case BlockUse::KeptCotangents:
    return stashes.cotangentBytes;
  default:
    return plan.layout.activationBytes;
  }
}

class ActivationPlan {
public:
  ActivationPlan(StagePlan &plan, int64_t base)
      : plan(plan), layout(plan.layout), shape(plan.shape), base(base),
        section(base), host(0),
        held(size_t(shape.rows() + shape.hasUnpipelined) * shape.microbatches) {
  }

  bool run() {
    section.recordLives(plan.lives, plan.row.size());
    if (has(plan, ActionKind::SendForward))
      forward.open(section, layout.activationBytes);
    if (has(plan, ActionKind::SendBackward))
      backward.open(section, layout.activationBytes);
    for (size_t a = 0; a < plan.row.size() && plan.error.empty(); ++a) {
      number = int(a);
      current = &plan.drafts[a];
      section.beginAction(number);
      if (plan.row[a].startsPair)
        section.hold();
      add(plan.row[a]);
      if (isCompute(plan.row[a].kind) && !plan.row[a].startsPair) {
        section.letGo();
        section.settle();
        host.settle();
      }
    }
    Stage &stage = plan.stage;
    stage.regions.push_back({"activations", base, section.peak()});
    stage.arenaBytes = base + section.peak();
    stage.hostBytes = host.peak();
    if (stage.hostBytes > 0)
      stage.hostRegions.push_back({"offloaded", 0, stage.hostBytes});
    return plan.error.empty();
  }

private:
  using Kind = ActionKind;
  using Use = BlockUse;

  ArenaBlock open(Use use, int chunk) {
    return section.open(bytesOf(plan, use, chunk), {use, chunk},
                        current->waits);
  }
  void close(ArenaBlock &block) { section.close(block); }
  void wait(int action) { current->waits.push_back(action); }
  void fail(const std::string &what) const { plan.fail(number, what); }

  /// A stage has one chunk of each row.
  size_t key(int chunk, int microbatch) const {
    return size_t(shape.rowOf(chunk)) * shape.microbatches + microbatch;
  }
  HeldActivations &heldOf(int chunk, int microbatch) {
    return held[key(chunk, microbatch)];
  }

  void add(const Action &action) {
    int c = action.chunk, m = action.microbatch;
    switch (action.kind) {
    case Kind::Forward:
      return addForward(c, m);
    case Kind::Backward:
      addInputHalf(c, m, /*weights=*/true);
      return release(c, m);
    case Kind::BackwardInput:
      return addInputHalf(c, m, /*weights=*/false);
    case Kind::BackwardWeight:
      addWeightHalf(c, m);
      return release(c, m);
    case Kind::SendForward:
      return addSend(forward, c, m);
    case Kind::SendBackward:
      return addSend(backward, c, m);
    case Kind::RecvForward:
      heldOf(c, m).inputFrom = number;
      return addReceive(heldOf(c, m).input = open(Use::Inputs, c));
    case Kind::RecvBackward:
      heldOf(c, m).cotangentFrom = number;
      return addReceive(heldOf(c, m).cotangent = open(Use::Cotangents, c));
    case Kind::Offload:
      return addOffload(c, m);
    case Kind::Fetch:
      return addFetch(c, m);
    case Kind::Unshard:
    case Kind::Reshard:
    case Kind::ReduceGrad:
    case Kind::SumGrad:
    case Kind::Refresh:
      return; // they have windows of their own
    }
  }

  void addOffload(int c, int m) {
    HeldActivations &h = heldOf(c, m);
    if (h.stash.offset < 0 || h.offloadedBy >= 0)
      return fail("expected residuals on the device, between F and B");
    h.offloadedBy = number;
    current->slots.assign(kCopySlots, -1);
    if (plan.offloadsInput(c))
      leave(h.input, h.hostInput, layout.activationBytes, DeviceInputSlot);
    if (int64_t bytes = plan.stashes[c].offloadedBytes)
      leave(h.offloaded, h.host, bytes, DeviceOffloadedSlot);
  }
  /// `slot` and the next one are those of the two blocks.
  void leave(ArenaBlock &block, ArenaBlock &there, int64_t bytes, int slot) {
    there = host.open(bytes, {}, current->waits);
    current->slots[slot] = block.offset;
    current->slots[slot + 1] = there.offset;
    section.closeAfter(block, number);
  }

  void addFetch(int c, int m) {
    HeldActivations &h = heldOf(c, m);
    if (h.offloadedBy < 0 || h.fetchedBy >= 0)
      return fail("expected residuals in host memory, after OFFLOAD");
    h.fetchedBy = number;
    current->slots.assign(kCopySlots, -1);
    wait(h.offloadedBy);
    if (plan.offloadsInput(c))
      comeBack(h.input = open(Use::Inputs, c), h.hostInput, DeviceInputSlot);
    if (plan.stashes[c].offloadedBytes)
      comeBack(h.offloaded = open(Use::Offloaded, c), h.host,
               DeviceOffloadedSlot);
  }
  void comeBack(const ArenaBlock &block, const ArenaBlock &there, int slot) {
    current->slots[slot] = block.offset;
    current->slots[slot + 1] = there.offset;
  }

  /// Has B, or I, find all residuals on the device.
  void takeResiduals(HeldActivations &h) {
    if (h.offloadedBy >= 0 && h.fetchedBy < 0)
      return fail("needs residuals that are in host memory: expected FETCH "
                  "before");
    if (h.host.offset >= 0 || h.hostInput.offset >= 0)
      wait(h.fetchedBy);
    host.close(h.host);
    host.close(h.hostInput);
  }

  void addReceive(const ArenaBlock &place) { current->slots = {place.offset}; }

  void addSend(OutgoingBuffers &buffers, int c, int m) {
    std::optional<int64_t> offset = buffers.send(key(c, m), number);
    if (!offset)
      return fail("sends a message before it is made");
    current->slots = {*offset};
  }

  /// The buffer for the message that the current action makes.
  int64_t nextOutgoing(OutgoingBuffers &buffers, int c, int m) {
    std::optional<int64_t> offset = buffers.write(key(c, m), current->waits);
    if (!offset)
      fail("makes a message while " + std::to_string(pipe::kOutgoingBuffers) +
           " earlier ones have not been sent");
    return offset.value_or(-1);
  }

  /// Without layers, what the embedding makes leaves the chunk at once, and the
  /// loss reads what enters the chunk.
  void addForward(int c, int m) {
    HeldActivations &h = heldOf(c, m);
    if (c == 0 && plan.hasLayers(c))
      h.input = open(Use::Inputs, c);
    else if (h.inputFrom >= 0)
      wait(h.inputFrom);
    if (c > 0 && h.input.offset < 0)
      return fail("reads an activation that has not come");
    h.stash = open(Use::Residuals, c);
    h.offloaded = open(Use::Offloaded, c);
    int64_t output = -1;
    if (shape.sendsForward(c, m)) {
      output = nextOutgoing(forward, c, m);
    } else if (!plan.isLast(c) || plan.hasLayers(c)) {
      ArenaBlock &next = plan.isLast(c) ? h.output : heldOf(c + 1, m).input;
      next = open(Use::Inputs, plan.isLast(c) ? c : c + 1);
      output = next.offset;
    }
    current->slots = {h.input.offset, h.stash.offset, h.offloaded.offset,
                      output};
  }

  /// B, or I when the weights' half comes later. Without layers, the cotangent
  /// that the loss makes leaves the chunk at once, and the embedding reads the
  /// one that enters the chunk.
  void addInputHalf(int c, int m, bool weights) {
    HeldActivations &h = heldOf(c, m);
    if (h.stash.offset < 0)
      return fail("comes before its F");
    takeResiduals(h);
    if (!weights && layout.loss.backward >= 0)
      return fail("needs a model whose backward is split in two halves");
    if (layout.loss.backward < 0)
      h.cotangentStash = open(Use::KeptCotangents, c);
    if (plan.isLast(c) && plan.hasLayers(c))
      h.cotangent = open(Use::Cotangents, c);
    else if (h.cotangentFrom >= 0)
      wait(h.cotangentFrom);
    if (!plan.isLast(c) && h.cotangent.offset < 0)
      return fail("reads a cotangent that has not come");
    bool leaves = c > 0 && shape.sendsBackward(c, m);
    ArenaBlock result; // cotangent of the chunk's input when it stays here
    if (!leaves && (c > 0 || plan.hasLayers(c)))
      result = open(Use::Cotangents, std::max(c - 1, 0));
    ArenaBlock other;
    int64_t to = leaves ? nextOutgoing(backward, c, m) : result.offset;
    if (plan.chunks[c].size() > 1)
      other = open(Use::Cotangents, c);
    current->slots = heldSlots(h);
    for (int64_t offset : {h.cotangent.offset, other.offset, to})
      current->slots.push_back(offset);
    close(other);
    if (c == 0)
      close(result);
    else if (!leaves)
      heldOf(c - 1, m).cotangent = result;
    close(h.cotangent);
  }

  void addWeightHalf(int c, int m) {
    HeldActivations &h = heldOf(c, m);
    if (h.cotangentStash.offset < 0)
      return fail("comes before its I");
    current->slots = heldSlots(h);
  }

  /// After the last action of a chunk and microbatch.
  void release(int c, int m) {
    HeldActivations &h = heldOf(c, m);
    close(h.input);
    close(h.stash);
    close(h.offloaded);
    close(h.output);
    close(h.cotangentStash);
  }

  StagePlan &plan;
  const ModelLayout &layout;
  const pipe::Shape &shape;
  int64_t base; // where the activations begin
  Section section, host;
  std::vector<HeldActivations> held; // by row of chunks and microbatch
  OutgoingBuffers forward, backward;
  int number = 0; // number of the current action
  ActionDraft *current = nullptr;
};

} // namespace

bool planActivations(StagePlan &plan, int64_t base) {
  return ActivationPlan(plan, base).run();
}

} // namespace rota::memory
