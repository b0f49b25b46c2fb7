// SPDX-License-Identifier: Apache-2.0
//
// Walks a stage's timeline, opens and closes the blocks of activations, and
// writes every action's calls.
#include "lowering/memory/Activations.h"

#include <algorithm>

namespace rota::memory {
namespace {

/// What a stage holds for one chunk and microbatch.
struct HeldActivations {
  ArenaBlock input;           // of the chunk's first layer
  ArenaBlock stash;           // inputs of its other layers, residuals of all
  ArenaBlock offloaded;       // what of the stash may rest in host memory
  ArenaBlock host, hostInput; // where it and the input rest
  ArenaBlock output;          // of the last chunk: what the loss reads
  ArenaBlock cotangent;       // of the chunk's output
  ArenaBlock cotangentStash;  // kept from I to W
  int inputFrom = -1, cotangentFrom = -1; // the RECV actions; -1: made here
  int offloadedBy = -1, fetchedBy = -1;   // the OFFLOAD and FETCH actions
};

/// Offsets inside the stashes of a chunk, the same for all its microbatches.
struct ChunkForm {
  // Per layer, [0] unused; in `offloaded` for kinds whose input may leave.
  std::vector<int64_t> inputs;
  std::vector<int64_t> residuals;  // per layer
  std::vector<int64_t> offloaded;  // per layer
  std::vector<int64_t> cotangents; // per layer, then of the loss
  int64_t stashBytes = 0, offloadedBytes = 0, cotangentBytes = 0;
};

/// The two buffers of messages that leave in one direction.
struct Outgoing {
  static constexpr int kBuffers = pipe::kOutgoingBuffers;
  int64_t offset[kBuffers] = {-1, -1};
  int sent[kBuffers] = {-1, -1};           // the SEND that last read it
  bool waiting[kBuffers] = {false, false}; // written, not yet sent
  int made = 0;                            // messages so far
  std::vector<int> bufferOf; // by chunk * microbatches + microbatch
};

class ActivationPlan {
public:
  ActivationPlan(StagePlan &plan, const Windows &windows)
      : plan(plan), windows(windows), layout(plan.layout), chunks(plan.chunks),
        shape(plan.shape), program(plan.program), stage(plan.stage),
        base(windows.end()), section(base), host(0),
        held(size_t(shape.chunks()) * shape.microbatches) {}

  bool run() {
    for (int c = 0; c < shape.chunks(); ++c)
      forms.push_back(shape.owns(plan.number, c) ? formOf(c) : ChunkForm{});
    openOutgoing(forward, pipe::ActionKind::SendForward);
    openOutgoing(backward, pipe::ActionKind::SendBackward);
    for (size_t a = 0; a < plan.row.size() && plan.error.empty(); ++a) {
      number = int(a);
      current = &stage.actions[a];
      add(plan.row[a]);
      if (pipe::isCompute(plan.row[a].kind)) {
        section.settle();
        host.settle();
      }
    }
    stage.regions.push_back({"activations", base, section.peak()});
    stage.arenaBytes = base + section.peak();
    stage.hostBytes = host.peak();
    if (stage.hostBytes > 0)
      stage.hostRegions.push_back({"offloaded", 0, stage.hostBytes});
    return plan.error.empty();
  }

private:
  using Kind = pipe::ActionKind;

  ChunkForm formOf(int chunk) const {
    ChunkForm form;
    Packer stash, offloaded, cotangents;
    const auto &layers = chunks[chunk];
    for (size_t j = 0; j < layers.size(); ++j) {
      const TaskGroup &kind = layout.kinds[layers[j].kind];
      Packer &inputs = kind.offloadsInput ? offloaded : stash;
      form.inputs.push_back(j == 0 ? 0 : inputs.add(layout.activationBytes));
      form.residuals.push_back(stash.add(kind.residualBytes));
      form.offloaded.push_back(offloaded.add(kind.offloadedBytes));
      form.cotangents.push_back(cotangents.add(kind.cotangentBytes));
    }
    if (plan.isLast(chunk))
      form.cotangents.push_back(cotangents.add(layout.loss.cotangentBytes));
    form.stashBytes = stash.bytes();
    form.offloadedBytes = offloaded.bytes();
    form.cotangentBytes = cotangents.bytes();
    return form;
  }

  void openOutgoing(Outgoing &outgoing, Kind send) {
    bool any = std::any_of(plan.row.begin(), plan.row.end(),
                           [&](const auto &a) { return a.kind == send; });
    std::vector<int> none; // nothing was here before
    outgoing.bufferOf.assign(held.size(), -1);
    for (int64_t &offset : outgoing.offset)
      if (any)
        offset = section.open(layout.activationBytes, none).offset;
  }

  ArenaBlock open(int64_t bytes) { return section.open(bytes, current->waits); }
  void close(ArenaBlock &block) { section.close(block); }
  ArenaBlock openActivation() { return open(layout.activationBytes); }

  size_t key(int chunk, int microbatch) const {
    return size_t(chunk) * shape.microbatches + microbatch;
  }

  void add(const pipe::Action &action) {
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
      return addSend(forward, c, m, shape.rankOf(c + 1, m));
    case Kind::SendBackward:
      return addSend(backward, c, m, shape.rankOf(c - 1, m));
    case Kind::RecvForward:
      held[key(c, m)].inputFrom = number;
      held[key(c, m)].input = addReceive(shape.rankOf(c - 1, m));
      return;
    case Kind::RecvBackward:
      held[key(c, m)].cotangentFrom = number;
      held[key(c, m)].cotangent = addReceive(shape.rankOf(c + 1, m));
      return;
    case Kind::Offload:
      return addOffload(c, m);
    case Kind::Fetch:
      return addFetch(c, m);
    case Kind::Unshard:
    case Kind::Reshard:
    case Kind::ReduceGrad:
      return; // they have windows of their own
    }
  }

  const TaskGroup &kindOf(int c, size_t j) const {
    return layout.kinds[chunks[c][j].kind];
  }

  void addOffload(int c, int m) {
    HeldActivations &h = held[key(c, m)];
    if (h.stash.offset < 0 || h.offloadedBy >= 0)
      return fail("expected residuals on the device, between F and B");
    h.offloadedBy = number;
    if (kindOf(c, 0).offloadsInput)
      leave(h.input, h.hostInput, layout.activationBytes);
    if (forms[c].offloadedBytes > 0)
      leave(h.offloaded, h.host, forms[c].offloadedBytes);
  }
  void leave(ArenaBlock &block, ArenaBlock &there, int64_t bytes) {
    there = host.open(bytes, current->waits);
    current->transfers.push_back({-1, block.offset, there.offset, bytes});
    section.closeAfter(block, number);
  }

  void addFetch(int c, int m) {
    HeldActivations &h = held[key(c, m)];
    if (h.offloadedBy < 0 || h.fetchedBy >= 0)
      return fail("expected residuals in host memory, after OFFLOAD");
    h.fetchedBy = number;
    if (kindOf(c, 0).offloadsInput)
      comeBack(h, h.input, h.hostInput, layout.activationBytes);
    if (forms[c].offloadedBytes > 0)
      comeBack(h, h.offloaded, h.host, forms[c].offloadedBytes);
  }
  void comeBack(const HeldActivations &h, ArenaBlock &block,
                const ArenaBlock &there, int64_t bytes) {
    current->waits.push_back(h.offloadedBy);
    block = open(bytes);
    current->transfers.push_back({-1, there.offset, block.offset, bytes});
  }

  /// Has B, or I, find all residuals on the device.
  void takeResiduals(int c, int m) {
    HeldActivations &h = held[key(c, m)];
    if (h.offloadedBy >= 0 && h.fetchedBy < 0)
      return fail("needs residuals that are in host memory: expected FETCH "
                  "before");
    if (h.host.offset >= 0 || h.hostInput.offset >= 0)
      current->waits.push_back(h.fetchedBy);
    host.close(h.host);
    host.close(h.hostInput);
  }

  ArenaBlock addReceive(int peer) {
    ArenaBlock place = openActivation();
    current->peer = peer;
    current->offset = place.offset;
    current->bytes = layout.activationBytes;
    return place;
  }

  void addSend(Outgoing &outgoing, int c, int m, int peer) {
    int buffer = outgoing.bufferOf[key(c, m)];
    if (buffer < 0)
      return fail("sends a message before it is made");
    current->peer = peer;
    current->offset = outgoing.offset[buffer];
    current->bytes = layout.activationBytes;
    outgoing.sent[buffer] = number;
    outgoing.waiting[buffer] = false;
  }

  /// The buffer for the message that the current action makes.
  int64_t nextOutgoing(Outgoing &outgoing, int c, int m) {
    int buffer = outgoing.made++ % Outgoing::kBuffers;
    if (outgoing.waiting[buffer])
      fail("makes a message while " + std::to_string(Outgoing::kBuffers) +
           " earlier ones have not been sent");
    if (outgoing.sent[buffer] >= 0)
      current->waits.push_back(outgoing.sent[buffer]);
    outgoing.bufferOf[key(c, m)] = buffer;
    outgoing.waiting[buffer] = true;
    return outgoing.offset[buffer];
  }

  void fail(const std::string &what) const { plan.fail(number, what); }

  /// A frame with what every task may use.
  Call makeCall(int task, size_t block) const {
    Call call;
    call.task = task;
    std::fill_n(call.frame, kFrameFields, -1);
    call.frame[Parameters] = windows.values(number, block);
    call.frame[Gradients] = windows.gradients(number, block);
    call.frame[Constants] = plan.places.constants;
    call.frame[Scratch] = plan.places.scratch;
    return call;
  }
  /// Of layer j of a chunk whose blocks those of embed may lead.
  Call layerCall(int task, const HeldActivations &h, int c, size_t j) const {
    Call call = makeCall(task, j + (c == 0));
    call.frame[Input] = inputOf(h, c, j);
    call.frame[Residuals] = h.stash.offset + forms[c].residuals[j];
    if (kindOf(c, j).offloadedBytes > 0)
      call.frame[Offloaded] = h.offloaded.offset + forms[c].offloaded[j];
    return call;
  }
  Call embedCall(int task, int m) const {
    Call call = makeCall(task, 0);
    call.frame[Data] = stage.inputData + m * partBytes(program.input, program);
    return call;
  }
  /// A call of a task of the loss: input and, by microbatch, targets and loss.
  Call lossCall(int task, const HeldActivations &h, int c, int m) const {
    Call call = makeCall(task, chunks[c].size() + (c == 0));
    call.frame[Input] = h.output.offset;
    call.frame[Data] =
        stage.targetData + m * partBytes(program.target, program);
    call.frame[Loss] = stage.loss + m * 8;
    return call;
  }
  int64_t inputOf(const HeldActivations &h, int c, size_t j) const {
    if (j == 0)
      return h.input.offset;
    const ArenaBlock &stash =
        kindOf(c, j).offloadsInput ? h.offloaded : h.stash;
    return stash.offset + forms[c].inputs[j];
  }

  int64_t auxiliaryOf(int c, size_t j, int m) const {
    auto place = plan.places.auxiliary.find(chunks[c][j].layer);
    int64_t sums = int64_t(kindOf(c, j).auxiliaryLosses.size());
    return sums == 0 ? -1 : place->second + m * 4 * sums;
  }

  void addForward(int c, int m) {
    HeldActivations &h = held[key(c, m)];
    if (c == 0) {
      h.input = openActivation();
      Call call = embedCall(layout.embed.forward, m);
      call.frame[Output] = h.input.offset;
      current->calls.push_back(call);
    } else if (h.inputFrom >= 0) {
      current->waits.push_back(h.inputFrom);
    }
    if (h.input.offset < 0)
      return fail("reads an activation that has not come");
    h.stash = open(forms[c].stashBytes);
    h.offloaded = open(forms[c].offloadedBytes);
    int64_t output;
    if (shape.sendsForward(c, m)) {
      output = nextOutgoing(forward, c, m);
    } else {
      ArenaBlock &next = plan.isLast(c) ? h.output : held[key(c + 1, m)].input;
      next = openActivation();
      output = next.offset;
    }
    for (size_t j = 0, count = chunks[c].size(); j < count; ++j) {
      Call call = layerCall(kindOf(c, j).forward, h, c, j);
      call.frame[Output] = j + 1 == count ? output : inputOf(h, c, j + 1);
      call.frame[Auxiliary] = auxiliaryOf(c, j, m);
      current->calls.push_back(call);
    }
    current->evalCalls = current->calls;
  }

  /// B, or I when the weights' half comes later.
  void addInputHalf(int c, int m, bool weights) {
    HeldActivations &h = held[key(c, m)];
    if (h.stash.offset < 0)
      return fail("comes before its F");
    takeResiduals(c, m);
    if (!weights && layout.loss.backward >= 0)
      return fail("needs a model whose backward is split in two halves");
    if (!weights || layout.kinds[chunks[c][0].kind].backward < 0)
      h.cotangentStash = open(forms[c].cotangentBytes);
    if (plan.isLast(c)) {
      h.cotangent = openActivation();
      addLossInput(c, m, weights);
      if (layout.lossWeight >= 0)
        stage.startCalls.push_back(
            lossCall(layout.lossWeight, HeldActivations{}, c, m));
    } else if (h.cotangentFrom >= 0) {
      current->waits.push_back(h.cotangentFrom);
    }
    if (h.cotangent.offset < 0)
      return fail("reads a cotangent that has not come");
    ArenaBlock first; // cotangent of the chunk's input when it stays here
    int64_t last;
    if (c > 0 && shape.sendsBackward(c, m)) {
      last = nextOutgoing(backward, c, m);
    } else {
      first = openActivation();
      last = first.offset;
    }
    addLayersInput(c, m, weights, last);
    if (c == 0) {
      Call call = embedCall(layout.embed.backward, m);
      call.frame[OutputCotangent] = last;
      current->calls.push_back(call);
      close(first);
    } else if (first.offset >= 0) {
      held[key(c - 1, m)].cotangent = first;
    }
    close(h.cotangent);
  }

  /// Layers from the last to the first; the cotangents between them take turns
  /// in two places. `last` is where that of the first layer's input goes.
  void addLayersInput(int c, int m, bool weights, int64_t last) {
    HeldActivations &h = held[key(c, m)];
    ArenaBlock other = chunks[c].size() > 1 ? openActivation() : ArenaBlock{};
    int64_t from = h.cotangent.offset, to = other.offset;
    for (size_t j = chunks[c].size(); j-- > 0;) {
      const TaskGroup &kind = kindOf(c, j);
      bool joint = kind.backward >= 0;
      Call call =
          layerCall(joint ? kind.backward : kind.backwardInput, h, c, j);
      call.frame[OutputCotangent] = from;
      call.frame[InputCotangent] = j == 0 ? last : to;
      if (!joint)
        call.frame[Cotangents] =
            h.cotangentStash.offset + forms[c].cotangents[j];
      current->calls.push_back(call);
      if (!joint && weights)
        addLayerWeight(c, m, j);
      std::swap(from, to);
    }
    close(other);
  }

  void addLossInput(int c, int m, bool weights) {
    HeldActivations &h = held[key(c, m)];
    bool joint = layout.loss.backward >= 0;
    Call call = lossCall(
        joint ? layout.loss.backward : layout.loss.backwardInput, h, c, m);
    call.frame[InputCotangent] = h.cotangent.offset;
    if (!joint)
      call.frame[Cotangents] =
          h.cotangentStash.offset + forms[c].cotangents.back();
    current->calls.push_back(call);
    if (!joint && weights)
      addLossWeight(c, m);
    current->evalCalls.push_back(lossCall(layout.loss.forward, h, c, m));
    if (layout.logits < 0)
      return;
    Call logits = lossCall(layout.logits, h, c, m);
    logits.frame[Output] =
        stage.logits + m * partBytes(program.logits, program);
    current->calls.push_back(logits);
    current->evalCalls.push_back(logits);
  }

  void addLossWeight(int c, int m) {
    HeldActivations &h = held[key(c, m)];
    Call call = lossCall(layout.loss.backwardWeight, h, c, m);
    call.frame[Cotangents] =
        h.cotangentStash.offset + forms[c].cotangents.back();
    current->calls.push_back(call);
  }

  void addLayerWeight(int c, int m, size_t j) {
    HeldActivations &h = held[key(c, m)];
    Call call = layerCall(kindOf(c, j).backwardWeight, h, c, j);
    call.frame[Cotangents] = h.cotangentStash.offset + forms[c].cotangents[j];
    current->calls.push_back(call);
  }

  void addWeightHalf(int c, int m) {
    if (held[key(c, m)].cotangentStash.offset < 0)
      return fail("comes before its I");
    if (plan.isLast(c))
      addLossWeight(c, m);
    for (size_t j = chunks[c].size(); j-- > 0;)
      addLayerWeight(c, m, j);
  }

  /// After the last action of a chunk and microbatch.
  void release(int c, int m) {
    HeldActivations &h = held[key(c, m)];
    close(h.input);
    close(h.stash);
    close(h.offloaded);
    close(h.output);
    close(h.cotangentStash);
  }

  StagePlan &plan;
  const Windows &windows;
  const ModelLayout &layout;
  const ChunkTable &chunks;
  const pipe::Shape &shape;
  const Program &program;
  Stage &stage;
  int64_t base; // where the activations begin
  Section section, host;
  std::vector<HeldActivations> held;
  std::vector<ChunkForm> forms; // per chunk; empty for other stages' chunks
  Outgoing forward, backward;
  int number = 0; // of the current action
  Action *current = nullptr;
};

} // namespace

bool planActivations(StagePlan &plan, const Windows &windows) {
  return ActivationPlan(plan, windows).run();
}

} // namespace rota::memory
