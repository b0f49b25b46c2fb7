// SPDX-License-Identifier: Apache-2.0
//
// Batches of token sequences. Sequence n of a run, n = 0, 1, ..., is a function
// of seed, data and n: its source and its number there by Mixture.h, its place
// in the source by TokenWindows.h. A batch of a validation may have a size of
// its own: it takes as many runs of the timeline as it needs, and the rest of
// the last one has sequences that do not count, with token 0 as inputs and -1
// as targets.
#ifndef ROTA_RUNTIME_DATA_TOKENBATCHES_H
#define ROTA_RUNTIME_DATA_TOKENBATCHES_H

#include "runtime/data/Batches.h"
#include "runtime/data/Mixture.h"
#include "runtime/data/SequenceSource.h"

namespace rota {

struct SourcePaths;

struct TokenBatchOptions {
  std::optional<TokenType> type; // in files without a header; see findTokens
  // Share of each source, from its end, that validates and does not train. 1:
  // no training.
  double validationFraction = 0.0;
  int64_t validationBatches = 1;
  int64_t validationBatchSize = 0; // sequences of each; 0: those of a step
  uint64_t seed = 1;
};

class TokenBatches : public Batches {
public:
  /// Opens the data that `items` names, as --data does: see DataPaths.h. Throws
  /// InputError for data that cannot be read, has tokens that the program has
  /// not, or is shorter than a sequence and its last target.
  TokenBatches(const Program &program, const std::vector<std::string> &items,
               const TokenBatchOptions &options);

  void fill(Split split, int64_t first, const Destination &input,
            const Destination &target) const override;
  bool hasValidation() const override { return validates; }
  std::string describe() const override { return description; }

private:
  TokenBatches(const Program &program, const std::vector<SourcePaths> &paths,
               const TokenBatchOptions &options);

  struct Place {
    const SequenceSource *source;
    SequenceSource::Sequence sequence;
  };
  Place place(Split split, int64_t n) const;
  int64_t sequenceOf(Split split, int64_t number) const;

  std::vector<std::unique_ptr<SequenceSource>> sources;
  Mixture mixture;
  // Sequences of a batch of a validation; sequences of all its runs.
  int64_t validationBatchSize, validationNumbers;
  int64_t validationSequences;
  bool validates;
  std::string description;
};

/// Runs of the timeline that a batch of that many sequences takes.
int64_t runsOf(const Program &program, int64_t batchSize);

} // namespace rota

#endif // ROTA_RUNTIME_DATA_TOKENBATCHES_H
