// SPDX-License-Identifier: Apache-2.0
//
// All of the data, each token once.
#ifndef ROTA_RUNTIME_DATA_WHOLEBATCHES_H
#define ROTA_RUNTIME_DATA_WHOLEBATCHES_H

#include "runtime/data/Batches.h"
#include "runtime/data/Tokens.h"

namespace rota {

/// Sequences that lie side by side, from the first token on. Behind the last
/// token the last batch is padded: inputs are token 0, targets do not count.
class WholeBatches : public Batches {
public:
  /// Throws InputError when there is no target.
  WholeBatches(const Program &program, Tokens tokens);
  void fill(Split split, int64_t first, const Destination &input,
            const Destination &target) const override;
  bool hasValidation() const override { return true; }
  std::string describe() const override;

  int64_t batches() const;

private:
  Tokens tokens;
  int64_t length;         // tokens of a sequence, without the last target
  int64_t batchSequences; // sequences of a batch
};

} // namespace rota

#endif // ROTA_RUNTIME_DATA_WHOLEBATCHES_H
