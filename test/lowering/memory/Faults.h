// SPDX-License-Identifier: Apache-2.0
//
// Memory plans with one field changed, for tests of the plan's verifier.
#ifndef ROTA_TEST_LOWERING_MEMORY_FAULTS_H
#define ROTA_TEST_LOWERING_MEMORY_FAULTS_H

#include "lowering/memory/Layout.h"

namespace rota::test {

/// Gives an action a template of its own, with the offsets that the action has
/// in place of slots, and returns it.
ActionTemplate &ownTemplate(Stage &stage, int action);

/// Removes the wait number `wait` of an action.
void dropWait(Stage &stage, int action, int wait);

struct FaultReport {
  int tried = 0;
  std::vector<std::string> accepted; // what verifyPlan let pass
};

/// Changes, one after the other, every field of every call, transfer, clear,
/// message, wait, slot and start call of the plan, and has verifyPlan judge it.
FaultReport tryFaults(const memory::ModelLayout &layout,
                      const memory::ChunkTable &chunks,
                      const pipe::Timeline &timeline, Program program);

} // namespace rota::test

#endif // ROTA_TEST_LOWERING_MEMORY_FAULTS_H
