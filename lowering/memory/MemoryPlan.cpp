// SPDX-License-Identifier: Apache-2.0
//
// Walks each rank's timeline, opens and closes the blocks of activations, and
// writes every action's calls.
#include "lowering/memory/MemoryPlan.h"
#include "lowering/memory/FreeList.h"
#include "lowering/memory/StaticBlocks.h"

#include <algorithm>

namespace rota::memory {
namespace {

/// A place in the activations; empty until something lives there.
struct Block {
  int64_t offset = -1;
  int64_t bytes = 0;
};

/// What a rank holds for one chunk and microbatch.
struct Held {
  Block input;          // of the chunk's first layer
  Block stash;          // inputs of its other layers, residuals of all
  Block output;         // of the last chunk: what the loss reads
  Block cotangent;      // of the chunk's output
  Block cotangentStash; // kept from I to W
  int inputFrom = -1, cotangentFrom = -1; // the RECV actions; -1: made here
};

/// Offsets inside the stashes of a chunk, the same for all its microbatches.
struct ChunkForm {
  std::vector<int64_t> inputs;     // per layer, [0] unused
  std::vector<int64_t> residuals;  // per layer
  std::vector<int64_t> cotangents; // per layer, then of the loss
  int64_t stashBytes = 0, cotangentBytes = 0;
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

class RankPlan {
public:
  RankPlan(const Layout &layout, const ChunkTable &chunks,
           const pipe::Timeline &timeline, int number, const RankPlaces &places,
           Program &program, std::string &error)
      : layout(layout), chunks(chunks), shape(timeline.shape),
        row(timeline.ranks[number]), number(number), places(places),
        program(program), rank(program.stages[number]), error(error),
        base(places.end), held(size_t(shape.chunks()) * shape.microbatches) {}

  bool run() {
    for (int c = 0; c < shape.chunks(); ++c)
      forms.push_back(shape.rankOf(c) == number ? formOf(c) : ChunkForm{});
    openOutgoing(forward, pipe::ActionKind::SendForward);
    openOutgoing(backward, pipe::ActionKind::SendBackward);
    for (const pipe::Action &action : row) {
      rank.actions.emplace_back();
      current = &rank.actions.back();
      current->kind = static_cast<ActionKind>(action.kind);
      current->chunk = action.chunk;
      current->microbatch = action.microbatch;
      add(action);
      if (!error.empty())
        return false;
    }
    rank.regions.push_back({"activations", base, free.peak()});
    rank.arenaBytes = base + free.peak();
    return true;
  }

private:
  using Kind = pipe::ActionKind;

  ChunkForm formOf(int chunk) const {
    ChunkForm form;
    Packer stash, cotangents;
    const auto &layers = chunks[chunk];
    for (size_t j = 0; j < layers.size(); ++j) {
      const TaskGroup &kind = layout.kinds[layers[j].kind];
      form.inputs.push_back(j == 0 ? 0 : stash.add(layout.activationBytes));
      form.residuals.push_back(stash.add(kind.residualBytes));
      form.cotangents.push_back(cotangents.add(kind.cotangentBytes));
    }
    if (isLast(chunk))
      form.cotangents.push_back(cotangents.add(layout.loss.cotangentBytes));
    form.stashBytes = stash.bytes();
    form.cotangentBytes = cotangents.bytes();
    return form;
  }

  void openOutgoing(Outgoing &outgoing, Kind send) {
    bool any = std::any_of(row.begin(), row.end(),
                           [&](const auto &a) { return a.kind == send; });
    outgoing.bufferOf.assign(held.size(), -1);
    for (int64_t &offset : outgoing.offset)
      if (any)
        offset = open(layout.activationBytes).offset;
  }

  Block open(int64_t bytes) {
    bytes = alignUp(bytes);
    return {base + free.allocate(bytes), bytes};
  }
  void close(Block &block) {
    if (block.offset >= 0)
      free.free(block.offset - base, block.bytes);
    block = {};
  }
  Block openActivation() { return open(layout.activationBytes); }

  size_t key(int chunk, int microbatch) const {
    return size_t(chunk) * shape.microbatches + microbatch;
  }
  bool isLast(int chunk) const { return chunk == shape.chunks() - 1; }

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
      return addSend(forward, c, m, shape.rankOf(c + 1));
    case Kind::SendBackward:
      return addSend(backward, c, m, shape.rankOf(c - 1));
    case Kind::RecvForward:
      held[key(c, m)].inputFrom = actionNumber();
      held[key(c, m)].input = addReceive(shape.rankOf(c - 1));
      return;
    case Kind::RecvBackward:
      held[key(c, m)].cotangentFrom = actionNumber();
      held[key(c, m)].cotangent = addReceive(shape.rankOf(c + 1));
      return;
    case Kind::Unshard:
    case Kind::Reshard:
    case Kind::ReduceGrad:
    case Kind::Offload:
    case Kind::Fetch:
      return; // parameters are not sharded: nothing to do
    }
  }

  int actionNumber() const { return static_cast<int>(rank.actions.size()) - 1; }

  Block addReceive(int peer) {
    Block place = openActivation();
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
    outgoing.sent[buffer] = actionNumber();
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

  void fail(const std::string &what) {
    if (error.empty())
      error = "rank " + std::to_string(number) + ": chunk " +
              std::to_string(current->chunk) + ", microbatch " +
              std::to_string(current->microbatch) + ", " +
              toString(current->kind) + " " + what;
  }

  /// A frame with what every task may use.
  Call makeCall(int task, const BlockPlace &block) const {
    Call call;
    call.task = task;
    std::fill_n(call.frame, kFrameFields, -1);
    call.frame[Parameters] = block.values;
    call.frame[Gradients] = block.gradients;
    call.frame[Constants] = places.constants;
    call.frame[Scratch] = places.scratch;
    return call;
  }
  Call layerCall(int task, int c, size_t j) const {
    return makeCall(task, places.layers.at(chunks[c][j].layer));
  }
  /// A call of a task of the loss: input and, by microbatch, targets and loss.
  Call lossCall(int task, const Held &h, int m) const {
    Call call = makeCall(task, places.loss);
    call.frame[Input] = h.output.offset;
    call.frame[Data] = rank.targetData + m * program.target.bytes();
    call.frame[Loss] = rank.loss + m * 8;
    return call;
  }
  int64_t inputOf(const Held &h, int c, size_t j) const {
    return j == 0 ? h.input.offset : h.stash.offset + forms[c].inputs[j];
  }

  void addForward(int c, int m) {
    Held &h = held[key(c, m)];
    if (c == 0) {
      h.input = openActivation();
      Call call = makeCall(layout.embed.forward, places.embed);
      call.frame[Data] = rank.inputData + m * program.input.bytes();
      call.frame[Output] = h.input.offset;
      current->calls.push_back(call);
    } else if (h.inputFrom >= 0) {
      current->waits.push_back(h.inputFrom);
    }
    if (h.input.offset < 0)
      return fail("reads an activation that has not come");
    h.stash = open(forms[c].stashBytes);
    int64_t output;
    if (shape.sendsForward(c)) {
      output = nextOutgoing(forward, c, m);
    } else {
      Block &next = isLast(c) ? h.output : held[key(c + 1, m)].input;
      next = openActivation();
      output = next.offset;
    }
    for (size_t j = 0, count = chunks[c].size(); j < count; ++j) {
      Call call = layerCall(layout.kinds[chunks[c][j].kind].forward, c, j);
      call.frame[Input] = inputOf(h, c, j);
      call.frame[Output] = j + 1 == count ? output : inputOf(h, c, j + 1);
      call.frame[Residuals] = h.stash.offset + forms[c].residuals[j];
      current->calls.push_back(call);
    }
    current->evalCalls = current->calls;
  }

  /// B, or I when the weights' half comes later.
  void addInputHalf(int c, int m, bool weights) {
    Held &h = held[key(c, m)];
    if (h.stash.offset < 0)
      return fail("comes before its F");
    if (!weights && layout.loss.backward >= 0)
      return fail("needs a model whose backward is split in two halves");
    if (!weights || layout.kinds[chunks[c][0].kind].backward < 0)
      h.cotangentStash = open(forms[c].cotangentBytes);
    if (isLast(c)) {
      h.cotangent = openActivation();
      addLossInput(c, m, weights);
    } else if (h.cotangentFrom >= 0) {
      current->waits.push_back(h.cotangentFrom);
    }
    if (h.cotangent.offset < 0)
      return fail("reads a cotangent that has not come");
    Block first; // cotangent of the chunk's input when it stays here
    int64_t last;
    if (c > 0 && shape.sendsBackward(c)) {
      last = nextOutgoing(backward, c, m);
    } else {
      first = openActivation();
      last = first.offset;
    }
    addLayersInput(c, m, weights, last);
    if (c == 0) {
      Call call = makeCall(layout.embed.backward, places.embed);
      call.frame[Data] = rank.inputData + m * program.input.bytes();
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
    Held &h = held[key(c, m)];
    Block other = chunks[c].size() > 1 ? openActivation() : Block{};
    int64_t from = h.cotangent.offset, to = other.offset;
    for (size_t j = chunks[c].size(); j-- > 0;) {
      const TaskGroup &kind = layout.kinds[chunks[c][j].kind];
      bool joint = kind.backward >= 0;
      Call call = layerCall(joint ? kind.backward : kind.backwardInput, c, j);
      call.frame[Input] = inputOf(h, c, j);
      call.frame[Residuals] = h.stash.offset + forms[c].residuals[j];
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
    Held &h = held[key(c, m)];
    bool joint = layout.loss.backward >= 0;
    Call call = lossCall(
        joint ? layout.loss.backward : layout.loss.backwardInput, h, m);
    call.frame[InputCotangent] = h.cotangent.offset;
    if (!joint)
      call.frame[Cotangents] =
          h.cotangentStash.offset + forms[c].cotangents.back();
    current->calls.push_back(call);
    if (!joint && weights)
      addLossWeight(c, m);
    current->evalCalls.push_back(lossCall(layout.loss.forward, h, m));
    if (layout.logits < 0)
      return;
    Call logits = lossCall(layout.logits, h, m);
    logits.frame[Output] = rank.logits + m * program.logits.bytes();
    current->calls.push_back(logits);
    current->evalCalls.push_back(logits);
  }

  void addLossWeight(int c, int m) {
    Held &h = held[key(c, m)];
    Call call = lossCall(layout.loss.backwardWeight, h, m);
    call.frame[Cotangents] =
        h.cotangentStash.offset + forms[c].cotangents.back();
    current->calls.push_back(call);
  }

  void addLayerWeight(int c, int m, size_t j) {
    Held &h = held[key(c, m)];
    Call call = layerCall(layout.kinds[chunks[c][j].kind].backwardWeight, c, j);
    call.frame[Input] = inputOf(h, c, j);
    call.frame[Residuals] = h.stash.offset + forms[c].residuals[j];
    call.frame[Cotangents] = h.cotangentStash.offset + forms[c].cotangents[j];
    current->calls.push_back(call);
  }

  void addWeightHalf(int c, int m) {
    if (held[key(c, m)].cotangentStash.offset < 0)
      return fail("comes before its I");
    if (isLast(c))
      addLossWeight(c, m);
    for (size_t j = chunks[c].size(); j-- > 0;)
      addLayerWeight(c, m, j);
  }

  /// After the last action of a chunk and microbatch.
  void release(int c, int m) {
    Held &h = held[key(c, m)];
    close(h.input);
    close(h.stash);
    close(h.output);
    close(h.cotangentStash);
  }

  const Layout &layout;
  const ChunkTable &chunks;
  const pipe::Shape &shape;
  const std::vector<pipe::Action> &row;
  int number;
  const RankPlaces &places;
  Program &program;
  Stage &rank;
  std::string &error;
  int64_t base; // where the activations begin
  FreeList free;
  std::vector<Held> held;
  std::vector<ChunkForm> forms; // per chunk; empty for other ranks' chunks
  Outgoing forward, backward;
  Action *current = nullptr;
};

} // namespace

bool planMemory(const Layout &layout, const ChunkTable &chunks,
                const pipe::Timeline &timeline, Program &program,
                std::string &error) {
  error.clear();
  program = layout.program;
  program.microbatches = timeline.shape.microbatches;
  program.mesh = {{"stage", timeline.shape.stages}};
  std::vector<RankPlaces> places =
      placeStaticBlocks(layout, chunks, timeline.shape, program);
  for (int r = 0; r < timeline.shape.stages; ++r)
    if (!RankPlan(layout, chunks, timeline, r, places[r], program, error).run())
      return false;
  return true;
}

std::string describePlan(const Program &program) {
  auto cell = [](std::string text, size_t width) {
    return std::string(width > text.size() ? width - text.size() : 0, ' ') +
           text;
  };
  auto mebibytes = [&](int64_t bytes) {
    int64_t tenths = (bytes * 10 + (1 << 19)) >> 20;
    return cell(std::to_string(tenths / 10) + "." + std::to_string(tenths % 10),
                12);
  };
  std::string text = "bytes by rank (MiB)";
  for (size_t r = 0; r < program.stages.size(); ++r)
    text += cell(std::to_string(r), r == 0 ? 8 : 12);
  text += "\n";
  const auto &uses = program.stages.front().regions;
  for (size_t i = 0; i < uses.size(); ++i) {
    text += uses[i].use + std::string(15 - uses[i].use.size(), ' ');
    for (const Stage &rank : program.stages)
      text += mebibytes(rank.regions[i].bytes);
    text += "\n";
  }
  text += "arena          ";
  for (const Stage &rank : program.stages)
    text += mebibytes(rank.arenaBytes);
  return text + "\n";
}

} // namespace rota::memory
