// SPDX-License-Identifier: Apache-2.0
//
// Checks of every communicator between threads about ranks that fail. Every
// rank of a network calls these functions.
#ifndef ROTA_TEST_RUNTIME_COLLECTIVE_COMMUNICATORCHECKS_H
#define ROTA_TEST_RUNTIME_COLLECTIVE_COMMUNICATORCHECKS_H

#include "runtime/collective/Communicator.h"

#include <functional>

namespace rota::test {

/// An all-gather of that many f32, and the group of all ranks.
Collective gather(int64_t size);
RankGroup allRanks(const Communicator &communicator);
/// A sum of that many f32 that is added to the part of each rank.
Collective addParts(int64_t size);

/// The message of the error that `body` throws.
std::string failureOf(const std::function<void()> &body);

/// One of three ranks fails while the others wait for a message of 4 bytes.
void expectFailureWakesAllThatWait(Communicator &communicator, void *message);

/// Two ranks gather parts of different sizes, at most 8 elements together.
void expectDisagreementFailsTheRun(Communicator &communicator, void *part,
                                   void *whole);

} // namespace rota::test

#endif // ROTA_TEST_RUNTIME_COLLECTIVE_COMMUNICATORCHECKS_H
