// SPDX-License-Identifier: Apache-2.0
//
// The arena as a map from bytes to the names of the values there.
#include "lowering/memory/PlanVerifier.h"
#include "runtime/program/Verify.h"

#include <algorithm>
#include <map>

namespace rota::memory {
namespace {

/// A logical value: what it is, at which layer boundary, of which microbatch.
struct Name {
  const char *what = "";
  int64_t index = 0;
  int microbatch = 0;
  bool operator==(const Name &other) const {
    return std::string_view(what) == other.what && index == other.index &&
           microbatch == other.microbatch;
  }
  std::string str() const {
    return std::string(what) + " " + std::to_string(index) + " of microbatch " +
           std::to_string(microbatch);
  }
};

class RankVerifier {
public:
  RankVerifier(const Layout &layout, const ChunkTable &chunks,
               const pipe::Timeline &timeline, const Program &program,
               int number, std::string &error)
      : layout(layout), chunks(chunks), shape(timeline.shape),
        row(timeline.ranks[number]), program(program),
        rank(program.stages[number]), number(number), error(error) {
    first.push_back(0);
    for (const auto &layers : chunks)
      first.push_back(first.back() + int64_t(layers.size()));
  }

  void run() {
    verifyRegions();
    verifyStatic();
    if (rank.actions.size() != row.size())
      return fail("expected " + std::to_string(row.size()) + " actions, got " +
                  std::to_string(rank.actions.size()));
    for (bool training : {true, false}) {
      bytes.clear();
      for (size_t a = 0; a < row.size() && error.empty(); ++a)
        walk(int(a), training);
    }
  }

private:
  /// Bytes in use from some offset on.
  struct Content {
    int64_t bytes;
    Name name;
    int receive = -1; // not there before this action is waited for
    int send = -1;    // not free before this action is waited for
  };

  void fail(const std::string &what) {
    if (!error.empty())
      return;
    error = current < 0 ? "rank " + std::to_string(number)
                        : describe(program, number, current);
    error += ": " + what;
  }

  const Region *region(const char *use) const {
    for (const Region &r : rank.regions)
      if (r.use == use)
        return &r;
    return nullptr;
  }
  void inside(const char *use, int64_t offset, int64_t size,
              const std::string &what) {
    const Region *r = region(use);
    if (!r || offset < r->offset || offset + size > r->offset + r->bytes)
      fail("expected " + what + " inside the region '" + use +
           "', got offset " + std::to_string(offset) + " and " +
           std::to_string(size) + " bytes");
  }
  void aligned(int64_t offset, const std::string &what) {
    if (offset % kAlignment != 0)
      fail("expected " + what + " at a multiple of " +
           std::to_string(kAlignment) + ", got offset " +
           std::to_string(offset));
  }

  void verifyRegions() {
    int64_t end = 0;
    for (const Region &r : rank.regions) {
      if (r.offset < end)
        fail("expected the region '" + r.use + "' from " + std::to_string(end) +
             " on, got offset " + std::to_string(r.offset));
      end = r.offset + r.bytes;
    }
    if (end > rank.arenaBytes)
      fail("expected regions inside the arena of " +
           std::to_string(rank.arenaBytes) + " bytes, got " +
           std::to_string(end));
  }

  void verifyStatic() {
    std::vector<std::pair<int64_t, int64_t>> blocks; // offset, bytes
    auto add = [&](int64_t offset, int64_t size, const std::string &what) {
      aligned(offset, what);
      blocks.emplace_back(offset, size);
    };
    for (int r = 0; r < shape.stages; ++r)
      for (const Update &update : program.stages[r].updates) {
        const Parameter &p = program.parameters[update.parameter];
        int64_t count = elementCount(p);
        for (const Place &g : update.gradients)
          if (g.stage == number) {
            add(g.offset, 4 * count, "a gradient of '" + p.name + "'");
            inside("gradients", g.offset, 4 * count,
                   "a gradient of '" + p.name + "'");
          }
        for (const Place &c : update.copies)
          if (c.stage == number)
            add(c.offset, byteSize(p.compute) * count,
                "a copy of '" + p.name + "'");
        if (r != number)
          continue;
        add(update.master, 4 * count, "'" + p.name + "'");
        if (update.stored != update.master)
          add(update.stored, byteSize(p.compute) * count,
              "the compute copy of '" + p.name + "'");
        for (int64_t moment : {update.firstMoment, update.secondMoment}) {
          add(moment, 4 * count, "a moment of '" + p.name + "'");
          inside("optimizer", moment, 4 * count,
                 "a moment of '" + p.name + "'");
        }
      }
    for (const RotaryTable &table : rank.tables)
      add(table.offset, table.positions * int64_t(table.frequencies.size()) * 8,
          "a table");
    int64_t m = shape.microbatches;
    if (rank.inputData >= 0)
      add(rank.inputData, m * program.input.bytes(), "the inputs");
    if (rank.targetData >= 0)
      add(rank.targetData, m * program.target.bytes(), "the targets");
    if (rank.loss >= 0)
      add(rank.loss, m * 8, "the losses");
    if (rank.logits >= 0)
      add(rank.logits, m * program.logits.bytes(), "the logits");
    std::sort(blocks.begin(), blocks.end());
    for (size_t i = 0; i + 1 < blocks.size(); ++i)
      if (blocks[i].first + blocks[i].second > blocks[i + 1].first)
        fail("expected blocks apart, got one of " +
             std::to_string(blocks[i].second) + " bytes at " +
             std::to_string(blocks[i].first) + " and one at " +
             std::to_string(blocks[i + 1].first));
    if (!blocks.empty() && region("activations") &&
        blocks.back().first + blocks.back().second >
            region("activations")->offset)
      fail("expected the activations behind all other blocks");
  }

  bool waitsFor(int action) const {
    const auto &waits = rank.actions[current].waits;
    return std::find(waits.begin(), waits.end(), action) != waits.end();
  }

  /// `name` is now at `offset`; what was there is gone.
  void write(int64_t offset, int64_t size, Name name, int receive = -1) {
    if (size == 0)
      return;
    aligned(offset, name.str());
    inside("activations", offset, size, name.str());
    auto at = bytes.upper_bound(offset);
    if (at != bytes.begin())
      --at;
    while (at != bytes.end() && at->first < offset + size) {
      const Content &old = at->second;
      if (at->first + old.bytes <= offset) {
        ++at;
        continue;
      }
      for (int action : {old.send, old.receive})
        if (action >= 0 && !waitsFor(action))
          fail("overwrites " + old.name.str() + " without waiting for " +
               toString(rank.actions[action].kind) + " (action " +
               std::to_string(action) + ")");
      at = bytes.erase(at);
    }
    bytes[offset] = {size, name, receive, -1};
  }

  /// `name` must be at `offset`.
  void read(int64_t offset, int64_t size, Name name, int send = -1) {
    if (size == 0)
      return;
    auto at = bytes.find(offset);
    if (at == bytes.end() || !(at->second.name == name) ||
        at->second.bytes < size)
      return fail("expected " + name.str() + " at offset " +
                  std::to_string(offset) + ", got " +
                  (at == bytes.end() ? "nothing" : at->second.name.str()));
    if (at->second.receive >= 0) {
      if (!waitsFor(at->second.receive))
        return fail("reads " + name.str() + " without waiting for its receive");
      at->second.receive = -1;
    }
    if (send >= 0)
      at->second.send = send;
  }

  void walk(int action, bool training) {
    current = action;
    const pipe::Action &a = row[action];
    const Action &planned = rank.actions[action];
    if (int(a.kind) != int(planned.kind) || a.chunk != planned.chunk ||
        a.microbatch != planned.microbatch)
      return fail("expected " + pipe::toString(a));
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
    case Kind::Reshard:
    case Kind::ReduceGrad:
    case Kind::Offload:
    case Kind::Fetch:
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
    inside("scratch", call.frame[Scratch], layout.scratchBytes[task],
           "scratch");
    return &call;
  }

  void walkForward(int c, int m) {
    int64_t size = layout.activationBytes;
    if (c == 0)
      if (const Call *call = take(layout.embed.forward)) {
        data(*call, rank.inputData, program.input.bytes(), m);
        write(call->frame[Output], size, {"activation", 0, m});
      }
    for (size_t j = 0; j < chunks[c].size(); ++j) {
      int64_t layer = first[c] + int64_t(j);
      const TaskGroup &kind = layout.kinds[chunks[c][j].kind];
      const Call *call = take(kind.forward);
      if (!call)
        return;
      read(call->frame[Input], size, {"activation", layer, m});
      write(call->frame[Output], size, {"activation", layer + 1, m});
      write(call->frame[Residuals], kind.residualBytes,
            {"residuals", layer, m});
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
      if (call->frame[Output] != rank.logits + m * program.logits.bytes())
        fail("expected the logits in the place of microbatch " +
             std::to_string(m));
  }

  const Call *walkLoss(int task, int m) {
    const Call *call = take(task);
    if (!call)
      return nullptr;
    read(call->frame[Input], layout.activationBytes,
         {"activation", first.back(), m});
    data(*call, rank.targetData, program.target.bytes(), m);
    if (call->frame[Loss] != rank.loss + m * 8)
      fail("expected the loss in the place of microbatch " + std::to_string(m));
    return call;
  }

  void data(const Call &call, int64_t base, int64_t size, int m) {
    if (call.frame[Data] != base + m * size)
      fail("expected the data of microbatch " + std::to_string(m));
  }

  void walkBackward(const pipe::Action &a) {
    bool inputs = a.kind != pipe::ActionKind::BackwardWeight;
    bool weights = a.kind != pipe::ActionKind::BackwardInput;
    int c = a.chunk, m = a.microbatch;
    int64_t count = int64_t(chunks[c].size());
    if (c == shape.chunks() - 1) {
      walkPart(layout.loss, first.back(), m, inputs, weights, /*loss=*/true);
      if (inputs)
        walkLogits(m);
    }
    for (int64_t j = count; j-- > 0;)
      walkPart(layout.kinds[chunks[c][j].kind], first[c] + j, m, inputs,
               weights, /*loss=*/false);
    if (c > 0 || !inputs)
      return;
    if (const Call *call = take(layout.embed.backward)) {
      data(*call, rank.inputData, program.input.bytes(), m);
      read(call->frame[OutputCotangent], layout.activationBytes,
           {"cotangent", 0, m});
    }
  }

  /// The backward of a layer or of the loss, joint or in halves.
  void walkPart(const TaskGroup &group, int64_t layer, int m, bool inputs,
                bool weights, bool loss) {
    int64_t size = layout.activationBytes;
    bool joint = group.backward >= 0;
    Name input{"activation", layer, m}, residuals{"residuals", layer, m},
        kept{loss ? "loss's cotangents" : "kept cotangents", layer, m};
    auto common = [&](const Call &call) {
      read(call.frame[Input], size, input);
      if (loss)
        data(call, rank.targetData, program.target.bytes(), m);
      else
        read(call.frame[Residuals], group.residualBytes, residuals);
    };
    if (inputs) {
      const Call *call = take(joint ? group.backward : group.backwardInput);
      if (!call)
        return;
      Name result{"cotangent", layer, m}, incoming{"cotangent", layer + 1, m};
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
        common(*call);
        read(call->frame[Cotangents], group.cotangentBytes, kept);
      }
  }

  const Layout &layout;
  const ChunkTable &chunks;
  const pipe::Shape &shape;
  const std::vector<pipe::Action> &row;
  const Program &program;
  const Stage &rank;
  int number;
  std::string &error;
  std::vector<int64_t> first; // of each chunk: layers before it
  std::map<int64_t, Content> bytes;
  const std::vector<Call> *calls = nullptr;
  size_t next = 0;  // in calls
  int current = -1; // action
};

} // namespace

bool verifyPlan(const Layout &layout, const ChunkTable &chunks,
                const pipe::Timeline &timeline, const Program &program,
                std::string &error) {
  error.clear();
  for (int r = 0; r < timeline.shape.stages && error.empty(); ++r)
    RankVerifier(layout, chunks, timeline, program, r, error).run();
  return error.empty();
}

} // namespace rota::memory
