// SPDX-License-Identifier: Apache-2.0
//
// Random ragged all-to-alls of rows, checked byte by byte. Every rank of a
// communicator calls this.
#ifndef ROTA_TEST_RUNTIME_COLLECTIVE_RANDOMROWS_H
#define ROTA_TEST_RUNTIME_COLLECTIVE_RANDOMROWS_H

#include "runtime/GroupedAbi.h"
#include "runtime/collective/Communicator.h"

namespace rota::test {

/// One rank's part of a random exchange, and what it has then.
struct RowsOfRank {
  RotaRowExchange form;
  std::vector<int32_t> sent, received; // counts of both sides
  std::vector<char> source, expected;
};

/// The part of the rank at position `rank` in a group of `ranks`, to which all
/// give the same seed: rows for one block alone or one rank alone, blocks that
/// are empty, full to the row, or have counts above their room. A row has up to
/// `rowBytes` bytes.
RowsOfRank randomRows(uint64_t seed, int64_t rank, int64_t ranks,
                      int64_t rowBytes, bool gathersRows);

/// Moves such rows of `count` forms from the ranks of sequences to those of
/// blocks and back, in groups along random axes of a mesh. All ranks give the
/// same seed.
void exchangeRowsRandomly(Communicator &communicator, uint64_t seed, int count,
                          int64_t rowBytes);

} // namespace rota::test

#endif // ROTA_TEST_RUNTIME_COLLECTIVE_RANDOMROWS_H
