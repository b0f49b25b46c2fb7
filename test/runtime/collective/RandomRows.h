// SPDX-License-Identifier: Apache-2.0
//
// Random ragged all-to-alls of rows, checked byte by byte. Every rank of a
// communicator calls this.
#ifndef ROTA_TEST_RUNTIME_COLLECTIVE_RANDOMROWS_H
#define ROTA_TEST_RUNTIME_COLLECTIVE_RANDOMROWS_H

#include "runtime/collective/Communicator.h"

namespace rota::test {

/// Moves the rows of `count` random forms from the ranks of sequences to those
/// of blocks and back, some with one block that has all rows, some with none,
/// and some with more than their room. All ranks give the same seed; a row has
/// up to `rowBytes` bytes.
void exchangeRowsRandomly(Communicator &communicator, uint64_t seed, int count,
                          int64_t rowBytes);

} // namespace rota::test

#endif // ROTA_TEST_RUNTIME_COLLECTIVE_RANDOMROWS_H
