// SPDX-License-Identifier: Apache-2.0
//
// The calls of a stage's actions, written once for all actions that do the same
// at different places.
#ifndef ROTA_LOWERING_MEMORY_ACTIONTEMPLATES_H
#define ROTA_LOWERING_MEMORY_ACTIONTEMPLATES_H

#include "lowering/memory/WindowPlan.h"

#include <compare>

namespace rota::memory {

/// The slots of F, of W, and of B and I, which have more of the same list. A
/// slot without a block has the offset -1.
enum ComputeSlot : int {
  InputSlot,     // input of the chunk's layers or, without any, of the loss
  StashSlot,     // inputs of its other layers, residuals of all
  OffloadedSlot, // part of the stash that may rest on the host
  OutputSlot,    // F: the chunk's output; else: what the loss reads
  CotangentStashSlot, // kept from I to W
  CotangentSlot,      // cotangent of the chunk's output
  OtherCotangentSlot, // takes turns with it between layers
  InputCotangentSlot, // cotangent of the chunk's input
  kForwardSlots = OutputSlot + 1,
  kWeightSlots = CotangentStashSlot + 1,
  kInputSlots = InputCotangentSlot + 1,
};

/// The slots of OFFLOAD and FETCH.
enum CopySlot : int {
  DeviceInputSlot,
  HostInputSlot,
  DeviceOffloadedSlot,
  HostOffloadedSlot,
  kCopySlots,
};

class ActionTemplates {
public:
  ActionTemplates(StagePlan &plan, const WindowPlan &windows)
      : plan(plan), windows(windows) {}

  /// The number of the template for an action of the stage's row. It is added
  /// to the stage when the first action needs it.
  int find(int action);

  /// Adds the calls that find the loss's weights before a step.
  void addStartCalls();

private:
  using Kind = ActionKind;
  struct Key {
    Kind kind;
    int chunk, peer, values, gradients, cleared, round;
    bool startsPair = false, isPairedForward = false;
    auto operator<=>(const Key &) const = default;
  };

  int peerOf(const Action &action) const;
  ActionTemplate make(const Key &key);

  Call makeCall(int task, const ParameterBlock &block, size_t index,
                bool adds) const;
  Call layerCall(int task, size_t layer, bool adds = false) const;
  Call embedCall(int task, bool adds = false) const;
  Call lossCall(int task, int64_t block, bool adds = false) const;
  void addLossCalls(int task, bool adds, const SlotAddress &kept,
                    const SlotAddress &cotangent);
  SlotAddress inputOf(size_t layer) const;
  SlotAddress auxiliaryOf(size_t layer) const;
  SlotAddress observedOf(size_t layer) const;
  SlotAddress meansOf(size_t layer) const;
  SlotAddress keptCotangents(const TaskGroup &group, size_t layer) const;

  void addForward();
  void addBackward(bool inputs, bool weights);
  void addLayer(size_t layer, bool inputs, bool weights, bool swapped);
  void addLoss(bool inputs, bool weights);
  void addUnshard();
  void addReduceGrad();
  void addCopies(bool out);
  void addClears();

  StagePlan &plan;
  const WindowPlan &windows;
  std::map<Key, int> numbers;
  // The template that is being made.
  Key key;
  ActionTemplate made;
};

} // namespace rota::memory

#endif // ROTA_LOWERING_MEMORY_ACTIONTEMPLATES_H
