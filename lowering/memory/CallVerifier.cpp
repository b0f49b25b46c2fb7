// SPDX-License-Identifier: Apache-2.0
//
// The reads and writes of each task.
#include "lowering/memory/CallVerifier.h"

namespace rota::memory {

using Kind = ActionKind;

static constexpr const char *kFieldNames[] = {
#define ROTA_TEXT(name, compilerName) #name,
    ROTA_FRAME_FIELDS(ROTA_TEXT)
#undef ROTA_TEXT
};

CallVerifier::CallVerifier(VerifierState &state, WeightVerifier &weights)
    : state(state), weights(weights),
      scratch(findRegion(state.stage.regions, "scratch")),
      pairScratch(findRegion(state.stage.regions, "pair scratch")) {
  if (const Region *r = findRegion(state.stage.regions, "constants"))
    constants = r->offset;
}

//===----------------------------------------------------------------------===//
// Frames
//===----------------------------------------------------------------------===//

bool CallVerifier::take(int task, int m, int64_t layer) {
  if (!state.error.empty())
    return false;
  if (next == calls.size() || calls[next].task != task) {
    state.fail("expected call " + std::to_string(next) + " of task " +
               std::to_string(task));
    return false;
  }
  if (calls[next].layer != layer)
    state.fail("expected call " + std::to_string(next) + " of layer " +
               std::to_string(layer) + ", got " +
               std::to_string(calls[next].layer));
  frame = frameOf(calls[next++], slots, m);
  known = 0;
  rangeCount = 0;
  expectField(Constants, constants);
  if (int64_t positions = state.stage.positionData; positions >= 0)
    expectField(Positions, positions + m * partBytes(state.program.positions,
                                                     state.program));
  bool isStart = state.current < 0; // before a step
  const Region *own =
      !isStart && pipe::isPairedForward(state.row, state.current) ? pairScratch
                                                                  : scratch;
  expectField(Scratch, own ? own->offset : -1);
  if (!own || state.layout.scratchBytes[task] > own->bytes)
    state.fail("expected scratch of " +
               std::to_string(state.layout.scratchBytes[task]) +
               " bytes for task " + std::to_string(task));
  return true;
}

void CallVerifier::expectField(FrameField which, int64_t expected) {
  if (field(which) != expected)
    state.fail(std::string("expected ") + kFieldNames[which] + " at offset " +
               std::to_string(expected) + ", got " +
               std::to_string(frame[which]) + ", in call " +
               std::to_string(next - 1));
}

void CallVerifier::endCall() {
  for (int i = 0; i < kFrameFields; ++i)
    if (!(known >> i & 1))
      expectField(FrameField(i), -1);
}

void CallVerifier::read(FrameField which, int64_t bytes, Name name) {
  if (bytes == 0)
    return expectField(which, -1);
  state.fail(state.arena.read(field(which), bytes, name));
  usePaired(name, frame[which], frame[which] + bytes, /*writes=*/false);
  ranges[rangeCount++] = {frame[which], frame[which] + bytes};
}

void CallVerifier::write(FrameField which, int64_t bytes, Name name) {
  if (bytes == 0)
    return expectField(which, -1);
  int64_t begin = field(which), end = begin + bytes;
  state.inside(state.activations, begin, bytes, name);
  for (const Range &used : std::span(ranges.data(), rangeCount))
    if (begin < used.end && used.begin < end)
      state.fail("expected " + name.str() +
                 " apart from what else the call uses, got offset " +
                 std::to_string(begin));
  usePaired(name, begin, end, /*writes=*/true);
  state.fail(state.arena.write(begin, bytes, name));
  ranges[rangeCount++] = {begin, end};
}

void CallVerifier::usePaired(const Name &name, int64_t begin, int64_t end,
                             bool writes) {
  if (state.row[state.current].startsPair)
    return (writes ? pairWrites : pairReads).add(begin, end);
  if (!pipe::endsPair(state.row, state.current))
    return;
  if (pairWrites.overlap(begin, end) ||
      (writes && pairReads.overlap(begin, end)))
    state.fail("expected " + name.str() +
               " apart from what the other half of the pair uses, got offset " +
               std::to_string(begin));
}

bool CallVerifier::expectLaterPart(FrameField which, int64_t bytes,
                                   int64_t block) {
  if (block > 0)
    expectField(which,
                wholes[which] + block * (bytes / state.program.lossCalls));
  return block > 0;
}

void CallVerifier::readPart(FrameField which, int64_t bytes, Name name,
                            int64_t block) {
  if (expectLaterPart(which, bytes, block))
    return;
  read(which, bytes, name);
  wholes[which] = frame[which];
}

void CallVerifier::writePart(FrameField which, int64_t bytes, Name name,
                             int64_t block) {
  if (expectLaterPart(which, bytes, block))
    return;
  write(which, bytes, name);
  wholes[which] = frame[which];
}

void CallVerifier::expectLossAddresses(int m, int64_t block) {
  const Program &program = state.program;
  int64_t targets = partBytes(program.target, program);
  int64_t losses = lossBytes(program), blocks = program.lossCalls;
  expectField(Data, state.stage.targetData + m * targets +
                        block * (targets / blocks));
  expectField(Loss, state.stage.loss + m * losses + block * (losses / blocks));
}

void CallVerifier::use(const NamedBlock &block, bool adds, bool again) {
  weights.use(block, field(Parameters), field(Gradients), adds, again);
}

void CallVerifier::data(int64_t base, const DataForm &form, int m) {
  expectField(Data, base + m * partBytes(form, state.program));
}

//===----------------------------------------------------------------------===//
// Actions
//===----------------------------------------------------------------------===//

void CallVerifier::verifyStart() {
  std::vector<int> expected;
  for (const Action &a : state.row)
    if (state.layout.lossWeight >= 0 && state.isLast(a.chunk) &&
        (a.kind == Kind::Backward || a.kind == Kind::BackwardInput))
      expected.push_back(a.microbatch);
  const Stage &stage = state.stage;
  if (expected != stage.startMicrobatches ||
      int64_t(stage.startCalls.size()) !=
          (expected.empty() ? 0 : state.program.lossCalls))
    return state.fail("expected " + std::to_string(expected.size()) +
                      " weights of the loss before a step, in the order of "
                      "the backwards, got " +
                      std::to_string(stage.startMicrobatches.size()));
  for (int m : expected) {
    calls = stage.startCalls;
    slots = {};
    next = 0;
    for (int64_t block = 0; block < state.program.lossCalls; ++block) {
      if (!take(state.layout.lossWeight, m))
        return;
      expectLossAddresses(m, block);
      endCall();
    }
  }
}

void CallVerifier::walk(const Action &a, const ActionTemplate &actionTemplate) {
  calls = state.training ? actionTemplate.calls : actionTemplate.evalCalls;
  slots = state.stage.slotsOf(state.current);
  next = 0;
  if (a.startsPair) {
    pairReads.clear();
    pairWrites.clear();
  }
  if (a.kind == Kind::Forward) {
    // Values that only training reads have their places in evaluations, too.
    if (state.training && actionTemplate.calls != actionTemplate.evalCalls)
      state.fail("expected an evaluation to run the same calls");
    walkForward(a.chunk, a.microbatch);
  } else if (state.training) {
    walkBackward(a);
  } else {
    walkEvaluation(a);
  }
  if (state.error.empty() && next != calls.size())
    state.fail("expected " + std::to_string(next) + " calls, got " +
               std::to_string(calls.size()));
}

void CallVerifier::walkForward(int c, int m) {
  if (c == 0)
    embedForward(m);
  for (size_t j = 0; j < state.chunks[c].size(); ++j)
    layerForward(c, j, m);
}

void CallVerifier::embedForward(int m) {
  if (!take(state.layout.embed.forward, m))
    return;
  data(state.stage.inputData, state.program.input, m);
  use({&state.layout.embed.block, NamedBlock::kEmbed}, /*adds=*/false);
  write(Output, state.layout.activationBytes, {ValueKind::Activation, 0, m});
  endCall();
}

void CallVerifier::layerForward(int c, size_t j, int m) {
  const TaskGroup &kind = state.kindOf(c, j);
  int64_t layer = state.first[c] + int64_t(j),
          number = state.chunks[c][j].layer;
  if (!take(kind.forward, m, number))
    return;
  int64_t size = state.layout.activationBytes;
  use({&kind.block, number}, /*adds=*/false);
  read(Input, size, {ValueKind::Activation, layer, m});
  write(Output, size, {ValueKind::Activation, layer + 1, m});
  int64_t sums = -1;
  for (const AuxiliarySums &s : state.stage.auxiliarySums)
    if (s.layer == number && s.losses == kind.auxiliaryLosses)
      sums = s.offset + m * 4 * int64_t(s.losses.size());
  expectField(Auxiliary, sums);
  if ((sums < 0) != kind.auxiliaryLosses.empty())
    state.fail("expected a place for the auxiliary losses of layer " +
               std::to_string(number));
  int64_t tables = tablesOf(kind, number, m);
  expectField(Observed, tables);
  if ((tables < 0) != kind.observations.empty())
    state.fail("expected a place for the observations of layer " +
               std::to_string(number));
  write(Residuals, kind.residualBytes, {ValueKind::Residuals, layer, m});
  write(Offloaded, kind.offloadedBytes,
        {ValueKind::OffloadedResiduals, layer, m});
  endCall();
}

int64_t CallVerifier::tablesOf(const TaskGroup &kind, int64_t number,
                               int m) const {
  int64_t tables = -1;
  for (const ObservedTables &t : state.stage.observedTables)
    if (t.layer == number && t.observations == kind.observations)
      tables = t.offset + m * tableBytes(state.program, t.observations);
  return tables;
}

void CallVerifier::means(const TaskGroup &group, const NamedBlock &block,
                         int m) {
  if (readsMeans(state.program, group))
    expectField(Observed, tablesOf(group, block.layer, m));
}

void CallVerifier::walkEvaluation(const Action &a) {
  if (!state.isLast(a.chunk) || a.kind == Kind::BackwardWeight)
    return;
  for (int64_t block = 0; block < state.program.lossCalls; ++block)
    lossValue(state.layout.loss.forward, a.microbatch, block,
              /*isLogits=*/false);
  logits(a.microbatch);
}

void CallVerifier::lossValue(int task, int m, int64_t block, bool isLogits) {
  if (!take(task, m))
    return;
  use({&state.layout.loss.block, NamedBlock::kLoss}, /*adds=*/false);
  readPart(Input, state.layout.activationBytes,
           {ValueKind::Activation, state.first.back(), m}, block);
  expectLossAddresses(m, block);
  if (isLogits) {
    int64_t number = state.program.samples ? 0 : m;
    expectField(Output,
                state.stage.logits +
                    number * partBytes(state.program.logits, state.program));
  }
  endCall();
}

void CallVerifier::logits(int m) {
  if (state.layout.logits < 0 || (state.program.samples && state.training))
    return;
  for (int64_t block = 0; block < state.program.lossCalls; ++block)
    lossValue(state.layout.logits, m, block, /*isLogits=*/true);
}

void CallVerifier::walkBackward(const Action &a) {
  bool inputs = a.kind != Kind::BackwardWeight;
  bool halfOfWeights = a.kind != Kind::BackwardInput;
  int c = a.chunk, m = a.microbatch;
  if (state.isLast(c)) {
    part(state.layout.loss, {&state.layout.loss.block, NamedBlock::kLoss},
         state.first.back(), m, inputs, halfOfWeights);
    if (inputs)
      logits(m);
  }
  for (size_t j = state.chunks[c].size(); j-- > 0;)
    part(state.kindOf(c, j),
         {&state.kindOf(c, j).block, state.chunks[c][j].layer},
         state.first[c] + int64_t(j), m, inputs, halfOfWeights);
  if (c == 0 && inputs)
    embedBackward(m);
}

void CallVerifier::embedBackward(int m) {
  if (!take(state.layout.embed.backward, m))
    return;
  data(state.stage.inputData, state.program.input, m);
  use({&state.layout.embed.block, NamedBlock::kEmbed}, /*adds=*/true);
  read(OutputCotangent, state.layout.activationBytes,
       {ValueKind::Cotangent, 0, m});
  endCall();
}

void CallVerifier::partInputs(const TaskGroup &group, bool loss, int64_t layer,
                              int m, int64_t block) {
  readPart(Input, state.layout.activationBytes,
           {ValueKind::Activation, layer, m}, block);
  if (loss)
    return expectLossAddresses(m, block);
  read(Residuals, group.residualBytes, {ValueKind::Residuals, layer, m});
  read(Offloaded, group.offloadedBytes,
       {ValueKind::OffloadedResiduals, layer, m});
}

void CallVerifier::part(const TaskGroup &group, const NamedBlock &block,
                        int64_t layer, int m, bool inputs, bool halfOfWeights) {
  bool joint = group.backward >= 0, loss = block.layer == NamedBlock::kLoss;
  int64_t blocks = loss ? state.program.lossCalls : 1;
  if (blocks > 1 && group.cotangentBytes > 0)
    state.fail("expected no cotangents that several calls of the loss keep");
  for (int64_t b = 0; inputs && b < blocks; ++b)
    inputHalf(group, block, layer, m, b);
  Name kept{ValueKind::KeptCotangents, layer, m};
  for (int64_t b = 0; halfOfWeights && !joint && b < blocks; ++b) {
    if (!take(group.backwardWeight, m, loss ? -1 : block.layer))
      return;
    use(block, /*adds=*/true, /*again=*/b > 0);
    partInputs(group, loss, layer, m, b);
    means(group, block, m);
    read(Cotangents, group.cotangentBytes, kept);
    endCall();
  }
}

void CallVerifier::inputHalf(const TaskGroup &group, const NamedBlock &block,
                             int64_t layer, int m, int64_t number) {
  int64_t size = state.layout.activationBytes;
  bool joint = group.backward >= 0, loss = block.layer == NamedBlock::kLoss;
  if (!take(joint ? group.backward : group.backwardInput, m,
            loss ? -1 : block.layer))
    return;
  use(block, /*adds=*/joint, /*again=*/number > 0);
  partInputs(group, loss, layer, m, number);
  means(group, block, m);
  if (!loss)
    read(OutputCotangent, size, {ValueKind::Cotangent, layer + 1, m});
  writePart(InputCotangent, size, {ValueKind::Cotangent, layer, m}, number);
  if (!joint)
    write(Cotangents, group.cotangentBytes,
          {ValueKind::KeptCotangents, layer, m});
  endCall();
}

} // namespace rota::memory
