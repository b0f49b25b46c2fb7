// SPDX-License-Identifier: Apache-2.0
//
// Sequences of token files. The last part of the tokens of all files validates.
// The rest trains, in epochs: see TokenWindows.h. Validation sequences lie at
// fixed positions, evenly over their part, the last one at its end; they may
// cross from a file to the next.
#ifndef ROTA_RUNTIME_DATA_FILESOURCE_H
#define ROTA_RUNTIME_DATA_FILESOURCE_H

#include "runtime/data/SequenceSource.h"
#include "runtime/data/TokenWindows.h"
#include "runtime/data/Tokens.h"

namespace rota {

class FileSource : public SequenceSource {
public:
  /// `validationFraction` of the tokens validate; 1: all, and none trains.
  /// `stream` begins the names of the random streams. Throws InputError when a
  /// part is shorter than a sequence of `length` tokens and its last target.
  FileSource(Tokens tokens, int64_t length, double validationFraction,
             uint64_t seed, const std::string &stream);

  void read(const Sequence &sequence, TokenRole role, int64_t begin,
            int64_t count, int32_t *out) const override;
  int64_t trainTokens() const override { return training; }
  int64_t validationTokens() const override { return tokens.size() - training; }
  std::string note() const override;

private:
  int64_t position(const Sequence &sequence) const;

  Tokens tokens;
  int64_t length;
  int64_t training;     // tokens
  TokenWindows windows; // windows of the training part
};

} // namespace rota

#endif // ROTA_RUNTIME_DATA_FILESOURCE_H
