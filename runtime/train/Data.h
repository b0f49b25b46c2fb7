// SPDX-License-Identifier: Apache-2.0
//
// The way of a batch from its source to the ranks.
#ifndef ROTA_RUNTIME_TRAIN_DATA_H
#define ROTA_RUNTIME_TRAIN_DATA_H

#include "runtime/data/Batches.h"
#include "runtime/data/ReadAhead.h"
#include "runtime/train/rank/Rank.h"

#include <future>
#include <memory>
#include <vector>

namespace rota {

/// Reads a rank's parts of batches. Any thread may use it, for as long as the
/// program and the batches exist.
class BatchReader {
public:
  BatchReader(const Rank &rank, const Batches &batches);

  /// The rank's parts of all microbatches of an accumulation step, one after
  /// the other; empty where the rank's stage does not use them.
  struct Parts {
    std::vector<char> input, target, positions;
  };
  /// `first`: the number of the accumulation step's first sequence.
  Parts read(Split split, int64_t first) const;

private:
  struct Side {
    Part part;
    int64_t bytes; // size of a microbatch; 0: the stage does not use it
  };
  static Side sideOf(const Rank &rank, const DataForm &form, int64_t offset);
  void readPositions(Split split, int64_t first, int32_t *out) const;

  const Batches &batches;
  int64_t microbatches, sequences; // per accumulation step, per microbatch
  Side input, target, positions;
  int64_t documentEnd; // Program::documentEnd
};

/// Brings a rank its parts of batches. The next accumulation step of training
/// is read while the rank works on the last one.
class BatchLoader {
public:
  /// All ranks of a process share `batches` and `readAhead`, which outlive the
  /// loader; the thread of `readAhead` ends before `batches` does.
  BatchLoader(Rank &rank, const Batches &batches, ReadAhead &readAhead);

  /// Writes the parts of the accumulation step of training whose first sequence
  /// has the number `first` to the places that the stage's tasks read. Throws
  /// what reading them has thrown.
  void load(int64_t first);

private:
  Rank &rank;
  ReadAhead &readAhead;
  std::shared_ptr<const BatchReader> reader;
  std::future<BatchReader::Parts> next;
  int64_t nextFirst = -1; // first sequence of `next`; -1: none
};

/// Reads the accumulation step that begins with sequence `first`, not ahead,
/// and writes the rank's parts.
void loadAccumulationStep(Rank &rank, const Batches &batches, Split split,
                          int64_t first);

} // namespace rota

#endif // ROTA_RUNTIME_TRAIN_DATA_H
