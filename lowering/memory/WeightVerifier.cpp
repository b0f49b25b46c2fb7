// SPDX-License-Identifier: Apache-2.0
//
// Without windows, weights and gradients have fixed offsets. With windows they
// are named contents of the arena.
#include "lowering/memory/WeightVerifier.h"

namespace rota::memory {

WeightVerifier::WeightVerifier(VerifierState &state)
    : state(state), hasWindows(memory::hasWindows(state.program)),
      kept(keptParameters(state.program, state.number)) {
  for (const Parameter &p : state.program.parameters)
    elements.push_back(
        partElements(p.shape, p.computeDivision, state.program.mesh));
}

void WeightVerifier::reset() {
  gathered.assign(state.chunks.size(), {});
  exchanged.clear();
  cleared.clear();
}

static Name weightsName(int parameter, int64_t layer) {
  return {ValueKind::Weights, parameter, std::max(layer, NamedBlock::kEmbed)};
}

static Name gradientName(int parameter, int64_t layer) {
  return {ValueKind::Gradient, parameter, layer};
}

const KeptParameter &WeightVerifier::keptOf(int parameter,
                                            int64_t layer) const {
  static const KeptParameter nothing;
  size_t number = std::max(layer, NamedBlock::kEmbed) + 1;
  return number < kept[parameter].size() ? kept[parameter][number] : nothing;
}

/// The place for the sum of a block's gradients of a parameter.
int64_t WeightVerifier::accumulatorOf(int parameter, int64_t layer) const {
  const auto &places = keptOf(parameter, layer).accumulators;
  if (places.empty())
    return -1;
  return layer == NamedBlock::kLoss ? places.back() : places.front();
}

void WeightVerifier::expectAt(int64_t expected, int64_t got, const Name &name) {
  if (expected != got)
    state.fail("expected " + name.str() + " at offset " +
               std::to_string(expected) + ", got " + std::to_string(got));
}

void WeightVerifier::unshard(int chunk, const ActionTemplate &actionTemplate) {
  size_t next = 0;
  if (hasWindows) {
    gathered[chunk].emplace();
    for (const NamedBlock &b : state.blocksOf(chunk)) {
      size_t count = b.block->entries.size();
      if (count > actionTemplate.transfers.size() - next)
        return state.fail("expected at least " + std::to_string(next + count) +
                          " transfers, got " +
                          std::to_string(actionTemplate.transfers.size()));
      gather(chunk, b, {actionTemplate.transfers.data() + next, count});
      next += count;
    }
  }
  if (next != actionTemplate.transfers.size())
    state.fail("expected " + std::to_string(next) + " transfers, got " +
               std::to_string(actionTemplate.transfers.size()));
}

/// The weights of a block come to one window.
void WeightVerifier::gather(int chunk, const NamedBlock &block,
                            std::span<const Transfer> transfers) {
  int64_t window = -1;
  for (size_t i = 0; i < transfers.size(); ++i) {
    const ParameterBlock::Entry &entry = block.block->entries[i];
    const Transfer &t = transfers[i];
    Name name = weightsName(entry.parameter, block.layer);
    readWeights(entry, block);
    int64_t target = state.stage.resolve(state.current, t.destination);
    if (i == 0)
      window = target - entry.value;
    expectAt(keptOf(entry.parameter, block.layer).stored,
             state.stage.resolve(state.current, t.source), name);
    expectAt(window + entry.value, target, name);
    if (t.collective != parameter(entry).unshard || t.bytes != 0)
      state.fail("expected " + name.str() + " gathered by collective " +
                 std::to_string(parameter(entry).unshard) + ", got " +
                 std::to_string(t.collective) + " and " +
                 std::to_string(t.bytes) + " bytes");
    state.inside(state.windows, target, bytesOf(entry), name);
    state.fail(state.arena.write(target, bytesOf(entry), name, state.current));
    gathered[chunk]->emplace_back(target, name);
  }
}

void WeightVerifier::reshard(int chunk) {
  if (!hasWindows)
    return;
  if (!gathered[chunk])
    return state.fail("expected gathered weights");
  for (auto &[offset, name] : *gathered[chunk])
    state.fail(state.arena.drop(offset, name));
  gathered[chunk].reset();
}

void WeightVerifier::reduceGrad(int chunk,
                                const ActionTemplate &actionTemplate) {
  for (const Transfer &t : actionTemplate.transfers)
    state.fail(reduceOne(chunk, t));
}

std::string WeightVerifier::reduceOne(int chunk, const Transfer &t) {
  int64_t source = state.stage.resolve(state.current, t.source);
  int64_t target = state.stage.resolve(state.current, t.destination);
  for (const NamedBlock &b : state.blocksOf(chunk))
    for (const ParameterBlock::Entry &entry : b.block->entries)
      if (!parameter(entry).isFrozen &&
          t.collective == parameter(entry).reduceGrad && t.bytes == 0 &&
          target == accumulatorOf(entry.parameter, b.layer)) {
        addGradient(entry, b);
        exchangedOf(entry, b.layer).reductions.push_back(state.current);
        return state.arena.take(source, gradientName(entry.parameter, b.layer),
                                state.current);
      }
  return "expected a gradient of the chunk added to its stored part, got "
         "offset " +
         std::to_string(target) + ", collective " +
         std::to_string(t.collective) + " and " + std::to_string(t.bytes) +
         " bytes";
}

void WeightVerifier::expectComplete(const std::vector<int> &actions,
                                    const char *what) {
  for (int action : actions)
    if (!state.completed.has(action))
      state.fail("expected it to wait for " + std::string(what) + " (action " +
                 std::to_string(action) + ")");
}

/// The exchanges of the tensor of an update, which is one of the chunk's; null,
/// with the error noted, where it is not.
WeightVerifier::Exchanged *WeightVerifier::exchangedOf(int chunk, int update) {
  const Update &u = state.stage.updates[update];
  for (const NamedBlock &b : state.blocksOf(chunk))
    for (const ParameterBlock::Entry &entry : b.block->entries)
      if (entry.parameter == u.parameter &&
          std::max(b.layer, NamedBlock::kEmbed) == u.layer)
        return &exchangedOf(entry, b.layer);
  state.fail("expected updates of the chunk, got number " +
             std::to_string(update));
  return nullptr;
}

void WeightVerifier::sumGrad(int chunk, const ActionTemplate &actionTemplate) {
  auto round = static_cast<size_t>(actionTemplate.round);
  for (int update : actionTemplate.updates) {
    Exchanged *of = exchangedOf(chunk, update);
    if (!of)
      return;
    if (!of->isAdded || of->sums.size() != round)
      state.fail("expected a gradient and round " +
                 std::to_string(of->sums.size()) + " of its sum, got round " +
                 std::to_string(round));
    expectComplete(of->reductions, "the REDUCE_GRAD of its gradient");
    expectComplete(of->sums, "the SUM_GRAD before it");
    of->sums.push_back(state.current);
  }
}

void WeightVerifier::refresh(int chunk, const ActionTemplate &actionTemplate) {
  for (int update : actionTemplate.updates) {
    Exchanged *of = exchangedOf(chunk, update);
    if (of && (of->isRead || of->refresh >= 0))
      state.fail("expected one REFRESH, before all that reads its weights");
    if (of)
      of->refresh = state.current;
  }
}

/// The stored part of a weight is read: it is there, or on its way until the
/// actions that were waited for.
void WeightVerifier::readWeights(const ParameterBlock::Entry &entry,
                                 const NamedBlock &block) {
  Exchanged &of = exchangedOf(entry, block.layer);
  of.isRead = true;
  if (of.refresh >= 0)
    expectComplete({of.refresh}, "the REFRESH of its weights");
}

/// A term of a gradient comes to its accumulator or window.
void WeightVerifier::addGradient(const ParameterBlock::Entry &entry,
                                 const NamedBlock &block) {
  Exchanged &of = exchangedOf(entry, block.layer);
  of.isAdded = true;
  if (!of.sums.empty())
    state.fail("expected all gradients before the SUM_GRAD that sums them "
               "(action " +
               std::to_string(of.sums[0]) + ")");
}

void WeightVerifier::clear(const ActionTemplate &actionTemplate) {
  cleared = actionTemplate.clears;
  for (const Clear &c : cleared) {
    state.inside(state.windows, c.offset, c.bytes, {});
    state.fail(state.arena.clear(c.offset, c.bytes));
  }
}

void WeightVerifier::use(const NamedBlock &block, int64_t values,
                         int64_t gradients, bool adds, bool again) {
  const std::vector<ParameterBlock::Entry> &entries = block.block->entries;
  if (entries.empty())
    expectAt(-1, values, {ValueKind::Weights, -1, block.layer});
  if (block.block->gradientBytes == 0 || !adds)
    expectAt(-1, gradients, {ValueKind::Gradient, -1, block.layer});
  for (const ParameterBlock::Entry &entry : entries) {
    int64_t value = values + entry.value, gradient = gradients + entry.gradient;
    Name name = weightsName(entry.parameter, block.layer);
    if (hasWindows) {
      state.fail(state.arena.read(value, bytesOf(entry), name));
    } else {
      readWeights(entry, block);
      expectAt(keptOf(entry.parameter, block.layer).stored, value, name);
    }
    if (!adds || parameter(entry).isFrozen)
      continue;
    addGradient(entry, block);
    name = gradientName(entry.parameter, block.layer);
    if (hasWindows)
      state.fail(state.arena.accumulate(gradient,
                                        byteSize(parameter(entry).gradient) *
                                            elements[entry.parameter],
                                        name));
    else
      expectAt(accumulatorOf(entry.parameter, block.layer), gradient, name);
  }
  if (!adds || again || block.block->gradientBytes == 0)
    return;
  auto found =
      std::find_if(cleared.begin(), cleared.end(), [&](const Clear &c) {
        return c.offset == gradients && c.bytes == block.block->gradientBytes;
      });
  if (found != cleared.end())
    cleared.erase(found);
}

void WeightVerifier::finish() {
  if (!cleared.empty())
    state.fail("expected calls that add to the " +
               std::to_string(cleared[0].bytes) + " zeros at offset " +
               std::to_string(cleared[0].offset));
}

} // namespace rota::memory
