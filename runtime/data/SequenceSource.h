// SPDX-License-Identifier: Apache-2.0
//
// A source of training and validation sequences of L tokens and their targets.
// Batches (TokenBatches.h) take sequences from one source or several.
#ifndef ROTA_RUNTIME_DATA_SEQUENCESOURCE_H
#define ROTA_RUNTIME_DATA_SEQUENCESOURCE_H

#include "runtime/data/TokenFile.h"

namespace rota {

enum class Split { Train, Validation };

/// Any thread may read it.
class SequenceSource {
public:
  virtual ~SequenceSource() = default;

  struct Sequence {
    Split split;
    int64_t number; // from 0, among the source's sequences of the split
    int64_t total;  // how many a validation has from this source
  };
  /// Positions [begin, begin + count) of the sequence's L inputs or L targets,
  /// to `out`. Throws InputError and RunError as TokenFile::read.
  virtual void read(const Sequence &sequence, TokenRole role, int64_t begin,
                    int64_t count, int32_t *out) const = 0;

  /// Tokens of each split, -1: no end.
  virtual int64_t trainTokens() const = 0;
  virtual int64_t validationTokens() const = 0;
  /// Facts that a user should know beside that; often empty.
  virtual std::string note() const { return ""; }
};

} // namespace rota

#endif // ROTA_RUNTIME_DATA_SEQUENCESOURCE_H
