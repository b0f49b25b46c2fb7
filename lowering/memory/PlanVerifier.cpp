// SPDX-License-Identifier: Apache-2.0
//
// Walks each stage's actions and says what they read and write.
#include "lowering/memory/PlanVerifier.h"
#include "lowering/memory/ByteNames.h"
#include "lowering/memory/StagePlan.h"
#include "lowering/memory/VerifyStatic.h"
#include "runtime/program/Verify.h"

#include <algorithm>

namespace rota::memory {
namespace {

class StageVerifier {
public:
  StageVerifier(const ModelLayout &layout, const ChunkTable &chunks,
                const pipe::Timeline &timeline, const Program &program,
                int number, std::string &error)
      : layout(layout), chunks(chunks), shape(timeline.shape),
        row(timeline.ranks[number]), program(program),
        stage(program.stages[number]), number(number), error(error),
        windows(hasWindows(program)), kept(keptParameters(program, number)),
        arena(stage, completed), host(stage, completed),
        gathered(chunks.size()) {
    first.push_back(0);
    for (const auto &layers : chunks)
      first.push_back(first.back() + int64_t(layers.size()));
  }

  void run() {
    std::string wrong = verifyStatic(program, number);
    if (!wrong.empty())
      return fail(wrong);
    if (stage.actions.size() != row.size())
      return fail("expected " + std::to_string(row.size()) + " actions, got " +
                  std::to_string(stage.actions.size()));
    verifyStart();
    for (bool mode : {true, false}) {
      training = mode;
      arena.reset();
      host.reset();
      completed.reset(row.size());
      gathered.assign(chunks.size(), {});
      for (size_t a = 0; a < row.size() && error.empty(); ++a)
        walk(int(a));
      current = -1;
      if (std::string name = arena.findUntaken(); !name.empty())
        fail("expected REDUCE_GRAD for " + name);
    }
  }

private:
  /// A parameter block of a chunk. Layers have their number; of both ends, the
  /// loss's gradients are other sums than embed's.
  struct ChunkBlock {
    const ParameterBlock *block;
    int64_t layer; // kEmbed, kLoss or a layer's number
  };
  static constexpr int64_t kEmbed = -1, kLoss = -2;

  void fail(const std::string &what) {
    if (!error.empty() || what.empty())
      return;
    error = current < 0 ? "stage " + std::to_string(number)
                        : describe(program, number, current);
    error += ": " + what;
  }

  void inside(const std::vector<Region> &regions, const char *use,
              int64_t offset, int64_t size, const std::string &what) {
    const Region *r = findRegion(regions, use);
    if (!r || offset < r->offset || offset + size > r->offset + r->bytes)
      fail("expected " + what + " inside the region '" + use +
           "', got offset " + std::to_string(offset) + " and " +
           std::to_string(size) + " bytes");
    if (offset % kAlignment != 0)
      fail("expected " + what + " at a multiple of " +
           std::to_string(kAlignment) + ", got offset " +
           std::to_string(offset));
  }

  /// `name` is now in the activations.
  void write(int64_t offset, int64_t size, Name name, int writer = -1) {
    if (size == 0)
      return;
    inside(stage.regions, "activations", offset, size, name.str());
    fail(arena.write(offset, size, name, writer));
  }
  void read(int64_t offset, int64_t size, Name name, int reader = -1) {
    fail(arena.read(offset, size, name, reader));
  }

  std::vector<ChunkBlock> blocksOf(int chunk) const {
    std::vector<ChunkBlock> blocks;
    if (chunk == 0)
      blocks.push_back({&layout.embed.block, kEmbed});
    for (const ChunkLayer &l : chunks[chunk])
      blocks.push_back({&layout.kinds[l.kind].block, l.layer});
    if (chunk == shape.chunks() - 1)
      blocks.push_back({&layout.loss.block, kLoss});
    return blocks;
  }
  const Parameter &parameter(const ParameterBlock::Entry &entry) const {
    return program.parameters[entry.parameter];
  }
  int64_t computeElements(const Parameter &p) const {
    return partElements(p.shape, p.computeDivision, program.mesh);
  }
  const KeptParameter &keptOf(int parameter, int64_t layer) const {
    static const KeptParameter nothing;
    auto found = kept.find({parameter, std::max(layer, kEmbed)});
    return found == kept.end() ? nothing : found->second;
  }
  /// Where the sum of a block's gradients of a parameter is kept.
  int64_t accumulatorOf(int parameter, int64_t layer) const {
    const auto &places = keptOf(parameter, layer).accumulators;
    if (places.empty())
      return -1;
    return layer == kLoss ? places.back() : places.front();
  }
  static Name weightsName(int parameter, int64_t layer) {
    return {"weights", parameter, std::max(layer, kEmbed)};
  }
  static Name gradientName(int parameter, int64_t layer) {
    return {"the gradient", parameter, layer};
  }

  void unshard(int chunk, const Action &planned) {
    if (!windows)
      return;
    size_t next = 0;
    for (const ChunkBlock &b : blocksOf(chunk))
      for (const ParameterBlock::Entry &entry : b.block->entries) {
        const Parameter &p = parameter(entry);
        Name name = weightsName(entry.parameter, b.layer);
        if (next == planned.transfers.size())
          return fail("expected a transfer of " + name.str());
        const Transfer &t = planned.transfers[next++];
        int64_t source = keptOf(entry.parameter, b.layer).stored;
        if (t.collective != p.unshard || t.source != source)
          return fail("expected " + name.str() + " gathered from offset " +
                      std::to_string(source) + ", got offset " +
                      std::to_string(t.source) + " and collective " +
                      std::to_string(t.collective));
        int64_t size = byteSize(p.compute) * computeElements(p);
        inside(stage.regions, "windows", t.destination, size, name.str());
        fail(arena.write(t.destination, size, name, current));
        gathered[chunk].emplace_back(t.destination, name);
      }
    if (next != planned.transfers.size())
      fail("expected " + std::to_string(next) + " transfers, got " +
           std::to_string(planned.transfers.size()));
  }

  void reshard(int chunk) {
    if (!windows)
      return;
    if (gathered[chunk].empty())
      fail("expected gathered weights");
    for (auto &[offset, name] : gathered[chunk])
      fail(arena.drop(offset, name));
    gathered[chunk].clear();
  }

  void reduceGrad(int chunk, const Action &planned) {
    for (const Transfer &t : planned.transfers)
      fail(reduceOne(chunk, t));
  }
  std::string reduceOne(int chunk, const Transfer &t) {
    for (const ChunkBlock &b : blocksOf(chunk))
      for (const ParameterBlock::Entry &entry : b.block->entries)
        if (t.collective == parameter(entry).reduceGrad &&
            t.destination == accumulatorOf(entry.parameter, b.layer))
          return arena.take(t.source, gradientName(entry.parameter, b.layer),
                            current);
    return "expected a gradient of the chunk added to its stored part, got "
           "offset " +
           std::to_string(t.destination) + " and collective " +
           std::to_string(t.collective);
  }

  void clear(const Clear &c) {
    inside(stage.regions, "gradient windows", c.offset, c.bytes, "zeros");
    fail(arena.clear(c.offset, c.bytes));
  }

  /// The call finds the block's weights, and where it `adds` to gradients, in
  /// training, the sum so far.
  void checkBlock(const Call &call, const ParameterBlock &block, int64_t layer,
                  bool adds) {
    for (const ParameterBlock::Entry &entry : block.entries) {
      const Parameter &p = parameter(entry);
      int64_t value = call.frame[Parameters] + entry.value;
      int64_t gradient = call.frame[Gradients] + entry.gradient;
      Name name = weightsName(entry.parameter, layer);
      if (windows)
        read(value, byteSize(p.compute) * computeElements(p), name);
      else if (value != keptOf(entry.parameter, layer).stored)
        fail("expected " + name.str() + " at offset " +
             std::to_string(keptOf(entry.parameter, layer).stored) + ", got " +
             std::to_string(value));
      if (!adds || !training)
        continue;
      name = gradientName(entry.parameter, layer);
      if (windows)
        fail(arena.accumulate(gradient, 4 * computeElements(p), name));
      else if (gradient != accumulatorOf(entry.parameter, layer))
        fail("expected " + name.str() + " at offset " +
             std::to_string(accumulatorOf(entry.parameter, layer)) + ", got " +
             std::to_string(gradient));
    }
  }

  /// Whatever lies there: the readers say what they want.
  void move(const pipe::Action &a, const Action &planned) {
    bool out = a.kind == pipe::ActionKind::Offload;
    ByteNames &from = out ? arena : host, &to = out ? host : arena;
    for (const Transfer &t : planned.transfers) {
      inside(stage.regions, "activations", out ? t.source : t.destination,
             t.bytes, "residuals");
      inside(stage.hostRegions, "offloaded", out ? t.destination : t.source,
             t.bytes, "residuals");
      fail(from.copy(t.source, t.bytes, to, t.destination, current));
    }
  }

  void walk(int action) {
    current = action;
    const pipe::Action &a = row[action];
    const Action &planned = stage.actions[action];
    if (int(a.kind) != int(planned.kind) || a.chunk != planned.chunk ||
        a.microbatch != planned.microbatch)
      return fail("expected " + pipe::toString(a));
    for (int wait : planned.waits)
      completed.add(wait);
    if (training)
      for (const Clear &c : planned.clears)
        clear(c);
    calls = training ? &planned.calls : &planned.evalCalls;
    next = 0;
    int64_t size = layout.activationBytes;
    using Kind = pipe::ActionKind;
    switch (a.kind) {
    case Kind::Forward:
      walkForward(a.chunk, a.microbatch);
      break;
    case Kind::Backward:
    case Kind::BackwardInput:
    case Kind::BackwardWeight:
      if (training)
        walkBackward(a);
      else
        walkEvaluation(a);
      break;
    case Kind::SendForward:
      return read(planned.offset, size,
                  {"activation", first[a.chunk + 1], a.microbatch}, action);
    case Kind::RecvForward:
      return write(planned.offset, size,
                   {"activation", first[a.chunk], a.microbatch}, action);
    case Kind::SendBackward:
      if (training)
        read(planned.offset, size, {"cotangent", first[a.chunk], a.microbatch},
             action);
      return;
    case Kind::RecvBackward:
      if (training)
        write(planned.offset, size,
              {"cotangent", first[a.chunk + 1], a.microbatch}, action);
      return;
    case Kind::Unshard:
      return unshard(a.chunk, planned);
    case Kind::Reshard:
      return reshard(a.chunk);
    case Kind::ReduceGrad:
      if (training)
        reduceGrad(a.chunk, planned);
      return;
    case Kind::Offload:
    case Kind::Fetch:
      if (training)
        move(a, planned);
      return;
    }
    if (error.empty() && next != calls->size())
      fail("expected " + std::to_string(next) + " calls, got " +
           std::to_string(calls->size()));
  }

  /// The next call, which must be of `task`.
  const Call *take(int task) {
    if (!error.empty())
      return nullptr;
    if (next == calls->size() || (*calls)[next].task != task) {
      fail("expected call " + std::to_string(next) + " of task " +
           std::to_string(task));
      return nullptr;
    }
    const Call &call = (*calls)[next++];
    inside(stage.regions, "scratch", call.frame[Scratch],
           layout.scratchBytes[task], "scratch");
    return &call;
  }

  void walkForward(int c, int m) {
    int64_t size = layout.activationBytes;
    if (c == 0)
      if (const Call *call = take(layout.embed.forward)) {
        data(*call, stage.inputData, program.input, m);
        checkBlock(*call, layout.embed.block, kEmbed, /*adds=*/false);
        write(call->frame[Output], size, {"activation", 0, m});
      }
    for (size_t j = 0; j < chunks[c].size(); ++j) {
      int64_t layer = first[c] + int64_t(j);
      const TaskGroup &kind = layout.kinds[chunks[c][j].kind];
      const Call *call = take(kind.forward);
      if (!call)
        return;
      checkBlock(*call, kind.block, chunks[c][j].layer, /*adds=*/false);
      read(call->frame[Input], size, {"activation", layer, m});
      write(call->frame[Output], size, {"activation", layer + 1, m});
      auxiliary(*call, kind, chunks[c][j].layer, m);
      write(call->frame[Residuals], kind.residualBytes,
            {"residuals", layer, m});
      write(call->frame[Offloaded], kind.offloadedBytes,
            {"offloaded residuals", layer, m});
      read(call->frame[Input], size, {"activation", layer, m});
      read(call->frame[Output], size, {"activation", layer + 1, m});
    }
  }

  void walkEvaluation(const pipe::Action &a) {
    bool hasLoss = a.chunk == shape.chunks() - 1 &&
                   a.kind != pipe::ActionKind::BackwardWeight;
    if (!hasLoss)
      return;
    walkLoss(layout.loss.forward, a.microbatch);
    walkLogits(a.microbatch);
  }

  void walkLogits(int m) {
    if (layout.logits < 0)
      return;
    if (const Call *call = walkLoss(layout.logits, m))
      if (call->frame[Output] !=
          stage.logits + m * partBytes(program.logits, program))
        fail("expected the logits in the place of microbatch " +
             std::to_string(m));
  }

  const Call *walkLoss(int task, int m) {
    const Call *call = take(task);
    if (!call)
      return nullptr;
    checkBlock(*call, layout.loss.block, kLoss, /*adds=*/false);
    read(call->frame[Input], layout.activationBytes,
         {"activation", first.back(), m});
    data(*call, stage.targetData, program.target, m);
    if (call->frame[Loss] != stage.loss + m * 8)
      fail("expected the loss in the place of microbatch " + std::to_string(m));
    return call;
  }

  /// The sums of auxiliary losses must go to the layer's place.
  void auxiliary(const Call &call, const TaskGroup &kind, int64_t layer,
                 int m) {
    int64_t expected = -1;
    for (const AuxiliarySums &sums : stage.auxiliarySums)
      if (sums.layer == layer && sums.losses == kind.auxiliaryLosses)
        expected = sums.offset + m * 4 * int64_t(sums.losses.size());
    if (call.frame[Auxiliary] != expected ||
        (expected < 0) != kind.auxiliaryLosses.empty())
      fail("expected the auxiliary losses of layer " + std::to_string(layer) +
           " and microbatch " + std::to_string(m) + " at " +
           std::to_string(expected) + ", got " +
           std::to_string(call.frame[Auxiliary]));
  }

  /// Before a step the weight of each microbatch whose loss is here goes to its
  /// place.
  void verifyStart() {
    std::vector<int64_t> expected, written;
    for (const pipe::Action &a : row)
      if (layout.lossWeight >= 0 && a.chunk == shape.chunks() - 1 &&
          (a.kind == pipe::ActionKind::Backward ||
           a.kind == pipe::ActionKind::BackwardInput))
        expected.push_back(stage.loss + a.microbatch * 8);
    for (const Call &call : stage.startCalls)
      written.push_back(call.frame[Loss]);
    if (expected != written)
      fail("expected " + std::to_string(expected.size()) +
           " weights of the loss before a step, each in its place, got " +
           std::to_string(written.size()));
  }

  void data(const Call &call, int64_t base, const DataForm &form, int m) {
    if (call.frame[Data] != base + m * partBytes(form, program))
      fail("expected the data of microbatch " + std::to_string(m));
  }

  void walkBackward(const pipe::Action &a) {
    bool inputs = a.kind != pipe::ActionKind::BackwardWeight;
    bool weights = a.kind != pipe::ActionKind::BackwardInput;
    int c = a.chunk, m = a.microbatch;
    int64_t count = int64_t(chunks[c].size());
    if (c == shape.chunks() - 1) {
      walkPart(layout.loss, first.back(), kLoss, m, inputs, weights);
      if (inputs)
        walkLogits(m);
    }
    for (int64_t j = count; j-- > 0;)
      walkPart(layout.kinds[chunks[c][j].kind], first[c] + j,
               chunks[c][j].layer, m, inputs, weights);
    if (c > 0 || !inputs)
      return;
    if (const Call *call = take(layout.embed.backward)) {
      data(*call, stage.inputData, program.input, m);
      checkBlock(*call, layout.embed.block, kEmbed, /*adds=*/true);
      read(call->frame[OutputCotangent], layout.activationBytes,
           {"cotangent", 0, m});
    }
  }

  /// The backward of a layer or of the loss, joint or in halves. `layer` counts
  /// from the first, `number` names the block.
  void walkPart(const TaskGroup &group, int64_t layer, int64_t number, int m,
                bool inputs, bool weights) {
    int64_t size = layout.activationBytes;
    bool joint = group.backward >= 0, loss = number == kLoss;
    Name input{"activation", layer, m}, residuals{"residuals", layer, m},
        offloaded{"offloaded residuals", layer, m},
        kept{loss ? "loss's cotangents" : "kept cotangents", layer, m};
    auto common = [&](const Call &call) {
      read(call.frame[Input], size, input);
      if (loss)
        return data(call, stage.targetData, program.target, m);
      read(call.frame[Residuals], group.residualBytes, residuals);
      read(call.frame[Offloaded], group.offloadedBytes, offloaded);
    };
    if (inputs) {
      const Call *call = take(joint ? group.backward : group.backwardInput);
      if (!call)
        return;
      Name result{"cotangent", layer, m}, incoming{"cotangent", layer + 1, m};
      checkBlock(*call, group.block, number, /*adds=*/joint);
      common(*call);
      if (!loss)
        read(call->frame[OutputCotangent], size, incoming);
      write(call->frame[InputCotangent], size, result);
      if (!joint)
        write(call->frame[Cotangents], group.cotangentBytes, kept);
      // A result must not lie on what the task reads.
      common(*call);
      if (!loss)
        read(call->frame[OutputCotangent], size, incoming);
      read(call->frame[InputCotangent], size, result);
    }
    if (weights && !joint)
      if (const Call *call = take(group.backwardWeight)) {
        checkBlock(*call, group.block, number, /*adds=*/true);
        common(*call);
        read(call->frame[Cotangents], group.cotangentBytes, kept);
      }
  }

  const ModelLayout &layout;
  const ChunkTable &chunks;
  const pipe::Shape &shape;
  const std::vector<pipe::Action> &row;
  const Program &program;
  const Stage &stage;
  int number;
  std::string &error;
  bool windows;
  KeptParameters kept;
  std::vector<int64_t> first; // of each chunk: layers before it
  bool training = true;
  Completed completed;
  ByteNames arena, host;
  // By chunk: the places and names of its gathered weights.
  std::vector<std::vector<std::pair<int64_t, Name>>> gathered;
  const std::vector<Call> *calls = nullptr;
  size_t next = 0;  // in calls
  int current = -1; // action
};

} // namespace

bool verifyPlan(const ModelLayout &layout, const ChunkTable &chunks,
                const pipe::Timeline &timeline, const Program &program,
                std::string &error) {
  error.clear();
  for (int r = 0; r < timeline.shape.stages && error.empty(); ++r)
    StageVerifier(layout, chunks, timeline, program, r, error).run();
  return error.empty();
}

} // namespace rota::memory
