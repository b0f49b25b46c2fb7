// SPDX-License-Identifier: Apache-2.0
//
// Walks each stage's actions twice, as training and as evaluation.
#include "lowering/memory/PlanVerifier.h"
#include "lowering/memory/CallVerifier.h"

namespace rota::memory {
namespace {

class StageVerifier {
public:
  StageVerifier(const ModelLayout &layout, const ChunkTable &chunks,
                const pipe::Timeline &timeline, const Program &program,
                int number, std::string &error)
      : state(layout, chunks, timeline, program, number, error), weights(state),
        calls(state, weights) {}

  void run() {
    state.fail(verifyStatic(state.layout, state.program, state.number));
    if (state.stage.actions.size() != state.row.size())
      state.fail("expected " + std::to_string(state.row.size()) +
                 " actions, got " + std::to_string(state.stage.actions.size()));
    if (!state.error.empty())
      return;
    calls.verifyStart();
    for (bool training : {true, false})
      walkAll(training);
  }

private:
  using Kind = ActionKind;

  void walkAll(bool training) {
    state.training = training;
    state.arena.reset();
    state.host.reset();
    state.completed.reset(state.row.size());
    weights.reset();
    for (size_t a = 0; a < state.row.size() && state.error.empty(); ++a)
      walk(int(a));
    state.current = -1;
    if (std::string name = state.arena.findUntaken(); !name.empty())
      state.fail("expected REDUCE_GRAD for " + name);
  }

  void walk(int action) {
    state.current = action;
    const Action &a = state.row[action];
    const ActionTemplate &actionTemplate = state.stage.templateOf(action);
    if (a.kind != actionTemplate.kind || a.chunk != actionTemplate.chunk ||
        a.startsPair != actionTemplate.startsPair ||
        a.microbatch != state.stage.actions[action].microbatch)
      return state.fail("expected " + toString(a));
    if (pipe::endsPair(state.row, action) &&
        !state.stage.waitsOf(action).empty())
      state.fail("expected the first half of its pair to wait");
    for (int wait : state.stage.waitsOf(action))
      state.completed.add(wait);
    if (!isCompute(a.kind))
      return walkOther(a, actionTemplate);
    if (state.training)
      weights.clear(actionTemplate);
    calls.walk(a, actionTemplate);
    if (state.training)
      weights.finish();
  }

  void walkOther(const Action &a, const ActionTemplate &actionTemplate) {
    if (!actionTemplate.calls.empty() || !actionTemplate.evalCalls.empty() ||
        !actionTemplate.clears.empty())
      state.fail("expected no calls and no clears");
    switch (a.kind) {
    case Kind::SendForward:
      return send(actionTemplate, a.chunk + 1, ValueKind::Activation, a);
    case Kind::RecvForward:
      return receive(actionTemplate, a.chunk - 1, ValueKind::Activation, a);
    case Kind::SendBackward:
      if (state.training)
        send(actionTemplate, a.chunk - 1, ValueKind::Cotangent, a);
      return;
    case Kind::RecvBackward:
      if (state.training)
        receive(actionTemplate, a.chunk + 1, ValueKind::Cotangent, a);
      return;
    case Kind::Unshard:
      return weights.unshard(a.chunk, actionTemplate);
    case Kind::Reshard:
      return weights.reshard(a.chunk);
    case Kind::ReduceGrad:
      if (state.training)
        weights.reduceGrad(a.chunk, actionTemplate);
      return;
    case Kind::SumGrad:
      if (state.training)
        weights.sumGrad(a.chunk, actionTemplate);
      return;
    case Kind::Refresh:
      return weights.refresh(a.chunk, actionTemplate);
    case Kind::Offload:
    case Kind::Fetch:
      if (state.training)
        copies(a, actionTemplate);
      return;
    default:
      return;
    }
  }

  /// The offset of a message between the action's chunk and chunk `other`.
  int64_t message(const ActionTemplate &actionTemplate, int other,
                  const Action &a) {
    int peer = state.shape.rankOf(other, a.microbatch);
    if (actionTemplate.peer != peer ||
        actionTemplate.bytes != state.layout.activationBytes)
      state.fail("expected " + std::to_string(state.layout.activationBytes) +
                 " bytes and stage " + std::to_string(peer) + ", got " +
                 std::to_string(actionTemplate.bytes) + " and " +
                 std::to_string(actionTemplate.peer));
    return state.stage.resolve(state.current, actionTemplate.message);
  }
  /// The value between two neighbours is that in front of the later chunk.
  Name nameOf(ValueKind kind, int other, const Action &a) const {
    return {kind, state.first[std::max(other, a.chunk)], a.microbatch};
  }
  void send(const ActionTemplate &actionTemplate, int other, ValueKind kind,
            const Action &a) {
    state.fail(state.arena.read(message(actionTemplate, other, a),
                                actionTemplate.bytes, nameOf(kind, other, a),
                                state.current));
  }
  void receive(const ActionTemplate &actionTemplate, int other, ValueKind kind,
               const Action &a) {
    int64_t offset = message(actionTemplate, other, a);
    Name name = nameOf(kind, other, a);
    state.inside(state.activations, offset, actionTemplate.bytes, name);
    state.fail(
        state.arena.write(offset, actionTemplate.bytes, name, state.current));
  }

  /// OFFLOAD and FETCH move the chunk's input, where it may leave, and all else
  /// that may.
  void copies(const Action &a, const ActionTemplate &actionTemplate) {
    size_t next = 0;
    if (!state.chunks[a.chunk].empty() &&
        state.kindOf(a.chunk, 0).offloadsInput)
      copy(a, actionTemplate, next++, state.layout.activationBytes, 1);
    int64_t bytes = 0, values = 0;
    for (size_t j = 0; j < state.chunks[a.chunk].size(); ++j) {
      const TaskGroup &kind = state.kindOf(a.chunk, j);
      bool input = j > 0 && kind.offloadsInput;
      bytes += input ? alignUp(state.layout.activationBytes) : 0;
      bytes += alignUp(kind.offloadedBytes);
      values += input + (kind.offloadedBytes > 0);
    }
    if (bytes > 0)
      copy(a, actionTemplate, next++, bytes, values);
    if (next != actionTemplate.transfers.size())
      state.fail("expected " + std::to_string(next) + " transfers, got " +
                 std::to_string(actionTemplate.transfers.size()));
  }
  void copy(const Action &a, const ActionTemplate &actionTemplate,
            size_t number, int64_t bytes, int64_t values) {
    if (number >= actionTemplate.transfers.size())
      return;
    const Transfer &t = actionTemplate.transfers[number];
    bool out = a.kind == Kind::Offload;
    ByteNames &from = out ? state.arena : state.host;
    ByteNames &to = out ? state.host : state.arena;
    int64_t source = state.stage.resolve(state.current, t.source);
    int64_t target = state.stage.resolve(state.current, t.destination);
    if (t.collective != -1 || t.bytes != bytes)
      state.fail("expected a copy of " + std::to_string(bytes) +
                 " bytes, got " + std::to_string(t.bytes) + " and collective " +
                 std::to_string(t.collective));
    Name name{ValueKind::OffloadedResiduals, state.first[a.chunk],
              a.microbatch};
    state.inside(state.activations, out ? source : target, bytes, name);
    state.inside(state.offloaded, out ? target : source, bytes, name);
    state.fail(from.move(source, bytes, to, target, state.current, values,
                         a.microbatch));
  }

  VerifierState state;
  WeightVerifier weights;
  CallVerifier calls;
};

} // namespace

bool verifyPlan(const ModelLayout &layout, const ChunkTable &chunks,
                const pipe::Timeline &timeline, const Program &program,
                std::string &error) {
  error.clear();
  for (int r = 0; r < timeline.shape.stages && error.empty(); ++r)
    if (verifyActions(program, r, error))
      StageVerifier(layout, chunks, timeline, program, r, error).run();
  return error.empty();
}

} // namespace rota::memory
