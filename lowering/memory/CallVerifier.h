// SPDX-License-Identifier: Apache-2.0
//
// The plan verifier's checks of what actions call.
#ifndef ROTA_LOWERING_MEMORY_CALLVERIFIER_H
#define ROTA_LOWERING_MEMORY_CALLVERIFIER_H

#include "lowering/memory/ByteRanges.h"
#include "lowering/memory/WeightVerifier.h"

namespace rota::memory {

/// Walks the calls of compute actions: each must be of the task that is due,
/// and every field of its frame must be what the task expects; -1 where it
/// expects nothing.
class CallVerifier {
public:
  CallVerifier(VerifierState &state, WeightVerifier &weights);

  /// The calls that write the loss's weights before a step.
  void verifyStart();

  /// The calls of the compute action `a`, whose template is `actionTemplate`.
  void walk(const Action &a, const ActionTemplate &actionTemplate);

private:
  void walkForward(int c, int m);
  void walkBackward(const Action &a);
  void walkEvaluation(const Action &a);

  void embedForward(int m);
  void embedBackward(int m);
  void layerForward(int c, size_t j, int m);
  /// The backward of a layer or of the loss, joint or in halves. `layer` counts
  /// from the first.
  void part(const TaskGroup &group, const NamedBlock &block, int64_t layer,
            int m, bool inputs, bool weights);
  /// The joint one, or the half that makes the input's cotangent, in call
  /// `number` of those that the loss has.
  void inputHalf(const TaskGroup &group, const NamedBlock &block, int64_t layer,
                 int m, int64_t number);
  /// The inputs of both halves of a part.
  void partInputs(const TaskGroup &group, bool loss, int64_t layer, int m,
                  int64_t block);
  /// The data and the loss of a block of the loss.
  void expectLossAddresses(int m, int64_t block);
  void lossValue(int task, int m, int64_t block, bool isLogits);
  void logits(int m);

  /// The place of the tables that layer `number` observes; -1: none.
  int64_t tablesOf(const TaskGroup &kind, int64_t number, int m) const;
  /// The means that backward reads, after these tables.
  void means(const TaskGroup &group, const NamedBlock &block, int m);

  /// The next call, which must be of `task` and of that layer (-1: of none);
  /// its frame is in `frame`. False when there is an error.
  bool take(int task, int m, int64_t layer = -1);
  /// The offset of a field that the task has.
  int64_t field(FrameField field) {
    known |= 1u << field;
    return frame[field];
  }
  void expectField(FrameField which, int64_t expected);
  /// Ends a call: fields that have not been asked for must be -1.
  void endCall();

  /// A value that a field refers to; without bytes the field must be -1. A
  /// result must not lie on what the call reads, which is read first, or on
  /// another result.
  void read(FrameField which, int64_t bytes, Name name);
  void write(FrameField which, int64_t bytes, Name name);
  /// Checks the place of a later part of a value, by that of its first. False
  /// for the first.
  bool expectLaterPart(FrameField which, int64_t bytes, int64_t block);
  /// Notes that the action uses the range, or checks that the other half of its
  /// pair leaves it alone: neither half may use bytes that the other one
  /// writes.
  void usePaired(const Name &name, int64_t begin, int64_t end, bool writes);
  /// A value of which each call of the loss has its part, call 0 the first: it
  /// stands for the whole value.
  void readPart(FrameField which, int64_t bytes, Name name, int64_t block);
  void writePart(FrameField which, int64_t bytes, Name name, int64_t block);
  void use(const NamedBlock &block, bool adds, bool again = false);
  void data(int64_t base, const DataForm &form, int m);

  VerifierState &state;
  WeightVerifier &weights;
  int64_t constants = -1;
  const Region *scratch, *pairScratch;
  ByteRanges pairReads, pairWrites; // by the first half of a pair
  // The action's calls.
  std::span<const Call> calls;
  std::span<const int64_t> slots;
  size_t next = 0;
  // The current call's frame and the fields that have been asked for.
  FrameOffsets frame;
  FrameOffsets wholes; // offsets of the values in parts
  unsigned known = 0;
  struct Range {
    int64_t begin, end;
  };
  std::array<Range, kFrameFields> ranges; // ranges that the call uses so far
  size_t rangeCount = 0;
};

} // namespace rota::memory

#endif // ROTA_LOWERING_MEMORY_CALLVERIFIER_H
