// SPDX-License-Identifier: Apache-2.0
//
// Tokens without files, for a first run and for benchmarks. They count up, with
// jumps: of K = min(vocabulary, classes, 64) tokens, token t of a sequence is
// a uniform draw at t = 0 and with probability 1/8 at every other t, else the
// token before it plus 1, modulo K. No two sequences of a run are alike; there
// are no epochs. A model that learns which token follows which reaches the
// entropy of a step,
//     -q ln q - (K - 1) (1/8K) ln (1/8K) nats with q = 7/8 + 1/8K:
// 0.88 for K = 64, against ln K = 4.16 of one that has learned K alone.
//
// Draw t of the stream (seed, NAME, number of the sequence): its words 0 and 1
// say the token, word 2 whether it is a jump.
#ifndef ROTA_RUNTIME_DATA_SYNTHETICSOURCE_H
#define ROTA_RUNTIME_DATA_SYNTHETICSOURCE_H

#include "runtime/data/SequenceSource.h"

namespace rota {

class SyntheticSource : public SequenceSource {
public:
  /// `stream` begins the names of the random streams, one for each split.
  SyntheticSource(TokenBounds bounds, bool validates, uint64_t seed,
                  std::string stream);

  void read(const Sequence &sequence, TokenRole role, int64_t begin,
            int64_t count, int32_t *out) const override;
  int64_t trainTokens() const override { return -1; }
  int64_t validationTokens() const override { return validates ? -1 : 0; }

private:
  int64_t kinds; // K
  bool validates;
  uint64_t seed;
  std::string stream;
};

} // namespace rota

#endif // ROTA_RUNTIME_DATA_SYNTHETICSOURCE_H
