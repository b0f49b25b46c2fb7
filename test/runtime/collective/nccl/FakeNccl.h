// SPDX-License-Identifier: Apache-2.0
//
// NCCL between fake GPUs of one process. Calls of different ranks must match in
// their order on each communicator, in kind and in bytes, and a communicator
// has one stream; both sides of an exchange are recorded in graphs, or neither;
// what breaks a rule of NCCL fails the test. A pair's first exchange of a size
// class in a direction waits on the host for the other rank, as NCCL connects;
// with NCCL_RUNTIME_CONNECT=0 the first all-gather connects those of all sizes,
// and a message always those of smaller ones. Where a
// rank aborts a communicator, the others' asyncError reports it, as NCCL does
// between machines.
#ifndef ROTA_TEST_RUNTIME_COLLECTIVE_NCCL_FAKENCCL_H
#define ROTA_TEST_RUNTIME_COLLECTIVE_NCCL_FAKENCCL_H

#include "runtime/collective/nccl/NcclApi.h"

namespace rota::test {

const NcclApi &fakeNccl();

/// An identifier that no other call returns.
NcclId fakeId();

/// Connections made so far, of both directions of pairs.
int fakeConnections();

/// From now on asyncError reports that other ranks of this communicator's run
/// have failed; null: of none.
void breakFakeNccl(bool isBroken);

/// From now on no communicator can be split.
void failFakeSplits(bool fail);

/// Communicators that were neither destroyed nor aborted.
int openFakeHandles();

} // namespace rota::test

#endif // ROTA_TEST_RUNTIME_COLLECTIVE_NCCL_FAKENCCL_H
