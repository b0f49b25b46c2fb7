// SPDX-License-Identifier: Apache-2.0
//
// Writes the calls, transfers and clears of an action as addresses relative to
// its slots.
#include "lowering/memory/ActionTemplates.h"
#include "lowering/memory/UpdatePlan.h"

namespace rota::memory {

/// `base` in the first microbatch, `bytes` further in each one after it.
static SlotAddress byMicrobatch(int64_t base, int64_t bytes) {
  SlotAddress address(base);
  address.stride = bytes;
  return address;
}

int ActionTemplates::find(int action) {
  const Action &a = plan.row[action];
  const ActionDraft &draft = plan.drafts[action];
  Key wanted{
      a.kind,       a.chunk,         peerOf(a),
      draft.values, draft.gradients, draft.cleared,
      draft.round,  a.startsPair,    pipe::isPairedForward(plan.row, action)};
  auto [found, isNew] =
      numbers.try_emplace(wanted, int(plan.stage.templates.size()));
  if (isNew)
    plan.stage.templates.push_back(make(wanted));
  return found->second;
}

int ActionTemplates::peerOf(const Action &a) const {
  switch (a.kind) {
  case Kind::SendForward:
  case Kind::RecvBackward:
    return plan.shape.rankOf(a.chunk + 1, a.microbatch);
  case Kind::SendBackward:
  case Kind::RecvForward:
    return plan.shape.rankOf(a.chunk - 1, a.microbatch);
  default:
    return -1;
  }
}

ActionTemplate ActionTemplates::make(const Key &wanted) {
  key = wanted;
  made = {};
  made.kind = key.kind;
  made.chunk = key.chunk;
  made.startsPair = key.startsPair;
  made.peer = key.peer;
  switch (key.kind) {
  case Kind::Forward:
    made.slotCount = kForwardSlots;
    addForward();
    break;
  case Kind::Backward:
    made.slotCount = kInputSlots;
    addBackward(/*inputs=*/true, /*weights=*/true);
    break;
  case Kind::BackwardInput:
    made.slotCount = kInputSlots;
    addBackward(/*inputs=*/true, /*weights=*/false);
    break;
  case Kind::BackwardWeight:
    made.slotCount = kWeightSlots;
    addBackward(/*inputs=*/false, /*weights=*/true);
    break;
  case Kind::SendForward:
  case Kind::RecvForward:
  case Kind::SendBackward:
  case Kind::RecvBackward:
    made.slotCount = 1;
    made.message = {0, 0};
    made.bytes = plan.layout.activationBytes;
    break;
  case Kind::Unshard:
    addUnshard();
    break;
  case Kind::ReduceGrad:
    addReduceGrad();
    break;
  case Kind::Offload:
  case Kind::Fetch:
    made.slotCount = kCopySlots;
    addCopies(key.kind == Kind::Offload);
    break;
  case Kind::SumGrad:
    made.round = key.round;
    made.updates = summedUpdates(plan, key.chunk, key.round);
    break;
  case Kind::Refresh:
    made.updates = refreshedUpdates(plan, key.chunk);
    break;
  case Kind::Reshard:
    break;
  }
  addClears();
  return std::move(made);
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

/// A call of a task that reads `block`, the chunk's block number `index`, and
/// where it `adds`, adds to its gradients. A call before a step does neither.
Call ActionTemplates::makeCall(int task, const ParameterBlock &block,
                               size_t index, bool adds) const {
  Call call;
  call.task = task;
  if (key.values >= 0 && !block.entries.empty())
    call.frame[Parameters] = windows.offsets(key.values)[index];
  if (adds && block.gradientBytes > 0)
    call.frame[Gradients] = windows.offsets(key.gradients)[index];
  if (plan.stage.positionData >= 0)
    call.frame[Positions] =
        byMicrobatch(plan.stage.positionData,
                     partBytes(plan.program.positions, plan.program));
  call.frame[Constants] = plan.offsets.constants;
  call.frame[Scratch] =
      key.isPairedForward ? plan.offsets.pairScratch : plan.offsets.scratch;
  return call;
}

/// The call of a layer of the chunk. In chunk 0, block 0 is the embedding's.
Call ActionTemplates::layerCall(int task, size_t layer, bool adds) const {
  const StashLayout &stashes = plan.stashes[key.chunk];
  const TaskGroup &kind = plan.kindOf(key.chunk, layer);
  Call call = makeCall(task, kind.block, layer + (key.chunk == 0), adds);
  call.layer = plan.chunks[key.chunk][layer].layer;
  call.frame[Input] = inputOf(layer);
  if (kind.residualBytes > 0)
    call.frame[Residuals] = {StashSlot, stashes.residuals[layer]};
  if (kind.offloadedBytes > 0)
    call.frame[Offloaded] = {OffloadedSlot, stashes.offloaded[layer]};
  return call;
}

Call ActionTemplates::embedCall(int task, bool adds) const {
  Call call = makeCall(task, plan.layout.embed.block, 0, adds);
  call.frame[Data] = byMicrobatch(plan.stage.inputData,
                                  partBytes(plan.program.input, plan.program));
  return call;
}

/// The call on block `block`, which is one part of what it reads and writes.
Call ActionTemplates::lossCall(int task, int64_t block, bool adds) const {
  int64_t blocks = plan.program.lossCalls;
  int64_t targets = partBytes(plan.program.target, plan.program);
  int64_t losses = lossBytes(plan.program);
  Call call = makeCall(task, plan.layout.loss.block,
                       plan.chunks[key.chunk].size() + (key.chunk == 0), adds);
  call.frame[Input] = {plan.hasLayers(key.chunk) ? OutputSlot : InputSlot,
                       block * (plan.layout.activationBytes / blocks)};
  call.frame[Data] =
      byMicrobatch(plan.stage.targetData + block * (targets / blocks), targets);
  call.frame[Loss] =
      byMicrobatch(plan.stage.loss + block * (losses / blocks), losses);
  return call;
}

/// A call for each block. A half of the backward has a place in `kept`, what
/// makes the cotangent of the input one in `cotangent`.
void ActionTemplates::addLossCalls(int task, bool adds, const SlotAddress &kept,
                                   const SlotAddress &cotangent) {
  int64_t blocks = plan.program.lossCalls;
  for (int64_t block = 0; block < blocks; ++block) {
    Call call = lossCall(task, block, adds);
    call.frame[Cotangents] = kept;
    call.frame[InputCotangent] = cotangent;
    if (!cotangent.isNone())
      call.frame[InputCotangent].offset +=
          block * (plan.layout.activationBytes / blocks);
    made.calls.push_back(call);
  }
}

SlotAddress ActionTemplates::inputOf(size_t layer) const {
  if (layer == 0)
    return {InputSlot, 0};
  bool leaves = plan.kindOf(key.chunk, layer).offloadsInput;
  return {leaves ? OffloadedSlot : StashSlot,
          plan.stashes[key.chunk].inputs[layer]};
}

SlotAddress ActionTemplates::auxiliaryOf(size_t layer) const {
  int64_t sums = int64_t(plan.kindOf(key.chunk, layer).auxiliaryLosses.size());
  if (sums == 0)
    return {};
  return byMicrobatch(
      plan.offsets.auxiliary.at(plan.chunks[key.chunk][layer].layer), 4 * sums);
}

SlotAddress ActionTemplates::observedOf(size_t layer) const {
  const std::vector<int> &tables = plan.kindOf(key.chunk, layer).observations;
  if (tables.empty())
    return {};
  return byMicrobatch(
      plan.offsets.observed.at(plan.chunks[key.chunk][layer].layer),
      tableBytes(plan.program, tables));
}

/// The tables whose means the layer's backward reads.
SlotAddress ActionTemplates::meansOf(size_t layer) const {
  bool reads = readsMeans(plan.program, plan.kindOf(key.chunk, layer));
  return reads ? observedOf(layer) : SlotAddress();
}

/// The place in which the input half of a layer's backward, or of the loss's
/// (after the layers), leaves cotangents for the weight half.
SlotAddress ActionTemplates::keptCotangents(const TaskGroup &group,
                                            size_t layer) const {
  if (group.cotangentBytes == 0)
    return {};
  return {CotangentStashSlot, plan.stashes[key.chunk].cotangents[layer]};
}

void ActionTemplates::addForward() {
  if (key.chunk == 0) {
    made.calls.push_back(embedCall(plan.layout.embed.forward));
    made.calls.back().frame[Output] = {
        plan.hasLayers(key.chunk) ? InputSlot : OutputSlot, 0};
  }
  size_t count = plan.chunks[key.chunk].size();
  for (size_t j = 0; j < count; ++j) {
    Call call = layerCall(plan.kindOf(key.chunk, j).forward, j);
    call.frame[Output] =
        j + 1 == count ? SlotAddress(OutputSlot, 0) : inputOf(j + 1);
    call.frame[Auxiliary] = auxiliaryOf(j);
    call.frame[Observed] = observedOf(j);
    made.calls.push_back(call);
  }
  made.evalCalls = made.calls;
}

/// From the loss to the first layer; the cotangents between layers take turns
/// in two places.
void ActionTemplates::addBackward(bool inputs, bool weights) {
  if (plan.isLast(key.chunk))
    addLoss(inputs, weights);
  bool swapped = false;
  for (size_t j = plan.chunks[key.chunk].size(); j-- > 0; swapped = !swapped)
    addLayer(j, inputs, weights, swapped);
  if (key.chunk > 0 || !inputs)
    return;
  made.calls.push_back(embedCall(plan.layout.embed.backward, /*adds=*/true));
  made.calls.back().frame[OutputCotangent] = {
      plan.hasLayers(key.chunk) ? InputCotangentSlot : CotangentSlot, 0};
}

void ActionTemplates::addLayer(size_t layer, bool inputs, bool weights,
                               bool swapped) {
  const TaskGroup &kind = plan.kindOf(key.chunk, layer);
  bool joint = kind.backward >= 0;
  SlotAddress kept = keptCotangents(kind, layer);
  if (inputs) {
    Call call = layerCall(joint ? kind.backward : kind.backwardInput, layer,
                          /*adds=*/joint);
    SlotAddress turns[] = {{CotangentSlot, 0}, {OtherCotangentSlot, 0}};
    call.frame[OutputCotangent] = turns[swapped];
    call.frame[InputCotangent] =
        layer == 0 ? SlotAddress(InputCotangentSlot, 0) : turns[!swapped];
    call.frame[Observed] = meansOf(layer);
    if (!joint)
      call.frame[Cotangents] = kept;
    made.calls.push_back(call);
  }
  if (weights && !joint) {
    made.calls.push_back(layerCall(kind.backwardWeight, layer, /*adds=*/true));
    made.calls.back().frame[Observed] = meansOf(layer);
    made.calls.back().frame[Cotangents] = kept;
  }
}

void ActionTemplates::addLoss(bool inputs, bool weights) {
  const TaskGroup &loss = plan.layout.loss;
  bool joint = loss.backward >= 0;
  SlotAddress kept = keptCotangents(loss, plan.chunks[key.chunk].size());
  SlotAddress cotangent(
      plan.hasLayers(key.chunk) ? CotangentSlot : InputCotangentSlot, 0);
  if (inputs)
    addLossCalls(joint ? loss.backward : loss.backwardInput, /*adds=*/joint,
                 joint ? SlotAddress() : kept, cotangent);
  if (weights && !joint)
    addLossCalls(loss.backwardWeight, /*adds=*/true, kept, {});
  if (!inputs)
    return;
  for (int64_t block = 0; block < plan.program.lossCalls; ++block)
    made.evalCalls.push_back(lossCall(loss.forward, block));
  if (plan.layout.logits < 0)
    return;
  bool samples = plan.program.samples;
  int64_t bytes = partBytes(plan.program.logits, plan.program);
  for (int64_t block = 0; block < plan.program.lossCalls; ++block) {
    Call logits = lossCall(plan.layout.logits, block);
    logits.frame[Output] = byMicrobatch(plan.stage.logits, samples ? 0 : bytes);
    made.evalCalls.push_back(logits);
    if (!samples)
      made.calls.push_back(logits);
  }
}

void ActionTemplates::addStartCalls() {
  if (plan.layout.lossWeight < 0)
    return;
  for (const Action &a : plan.row)
    if (plan.isLast(a.chunk) &&
        (a.kind == Kind::Backward || a.kind == Kind::BackwardInput))
      plan.stage.startMicrobatches.push_back(a.microbatch);
  if (plan.stage.startMicrobatches.empty())
    return;
  key = {Kind::Forward, plan.shape.chunks() - 1, -1, -1, -1, -1, 0};
  for (int64_t block = 0; block < plan.program.lossCalls; ++block) {
    plan.stage.startCalls.push_back(lossCall(plan.layout.lossWeight, block));
    plan.stage.startCalls.back().frame[Input] = {};
  }
}

//===----------------------------------------------------------------------===//
// Transfers and clears
//===----------------------------------------------------------------------===//

void ActionTemplates::addUnshard() {
  if (key.values < 0)
    return;
  std::vector<ChunkBlock> blocks = plan.blocksOf(key.chunk);
  for (size_t k = 0; k < blocks.size(); ++k) {
    const auto &entries = blocks[k].block->entries;
    for (size_t i = 0; i < entries.size(); ++i)
      made.transfers.push_back(
          {plan.program.parameters[entries[i].parameter].unshard,
           blocks[k].offsets->stored[i],
           windows.offsets(key.values)[k] + entries[i].value, 0});
  }
}

void ActionTemplates::addReduceGrad() {
  if (key.gradients < 0)
    return;
  std::vector<ChunkBlock> blocks = plan.blocksOf(key.chunk);
  for (size_t k = 0; k < blocks.size(); ++k) {
    int64_t window = windows.offsets(key.gradients)[k];
    const auto &entries = blocks[k].block->entries;
    for (size_t i = 0; window >= 0 && i < entries.size(); ++i) {
      if (plan.program.parameters[entries[i].parameter].isFrozen)
        continue;
      made.transfers.push_back(
          {plan.program.parameters[entries[i].parameter].reduceGrad,
           window + entries[i].gradient, blocks[k].offsets->accumulators[i],
           0});
    }
  }
}

void ActionTemplates::addCopies(bool out) {
  auto add = [&](int device, int host, int64_t bytes) {
    made.transfers.push_back({-1, SlotAddress(out ? device : host, 0),
                              SlotAddress(out ? host : device, 0), bytes});
  };
  if (plan.offloadsInput(key.chunk))
    add(DeviceInputSlot, HostInputSlot, plan.layout.activationBytes);
  if (int64_t bytes = plan.stashes[key.chunk].offloadedBytes)
    add(DeviceOffloadedSlot, HostOffloadedSlot, bytes);
}

void ActionTemplates::addClears() {
  if (key.cleared < 0)
    return;
  std::vector<ChunkBlock> blocks = plan.blocksOf(key.chunk);
  for (size_t k = 0; k < blocks.size(); ++k)
    if (int64_t window = windows.offsets(key.cleared)[k]; window >= 0)
      made.clears.push_back({window, blocks[k].block->gradientBytes});
}

} // namespace rota::memory
