// SPDX-License-Identifier: Apache-2.0
//
// Epochs over files of tokens. A file of t tokens has w = floor((t - 1) / L)
// windows of L tokens, each with the token after it as its last target. In an
// epoch every window of every file is read once, in a random order, so that
// each token is a target once, but for fewer than L at the ends of each file:
// r = (t - 1) mod L of them. The first window of a file begins at its token p,
// which is drawn from 0 to r for each epoch and file; so other tokens are left
// out and windows begin elsewhere in the next epoch. No window crosses files.
//
//     t = 11, L = 3, p = 1:  token    0  1  2  3  4  5  6  7  8  9 10
//                            inputs      a  a  a  b  b  b  c  c  c
//                            targets        a  a  a  b  b  b  c  c  c
//
// Sequence j of the run's sequences from these files is window (j mod W) of
// epoch floor(j / W), where W is the sum of w over files: it is found from j
// alone. Draws: the order of an epoch is a Permutation of the stream (seed,
// NAME, epoch); p of file f is draw f of the stream (seed, NAME.phase, epoch).
#ifndef ROTA_RUNTIME_DATA_TOKENWINDOWS_H
#define ROTA_RUNTIME_DATA_TOKENWINDOWS_H

#include <cstdint>
#include <string>
#include <vector>

namespace rota {

class TokenWindows {
public:
  /// File i has the tokens [boundaries[i], boundaries[i + 1]). `length` is L;
  /// `name` begins the names of the random streams.
  TokenWindows(std::vector<int64_t> boundaries, int64_t length, uint64_t seed,
               std::string name);

  /// Windows of an epoch: W.
  int64_t count() const { return firsts.back(); }
  /// Files that are shorter than a window and its last target.
  int64_t unusedFiles() const;
  /// The first token of sequence j >= 0. There must be a window.
  int64_t position(int64_t sequence) const;

private:
  std::vector<int64_t> boundaries;
  std::vector<int64_t> firsts = {0}; // first window of each file, and the end
  int64_t length;
  uint64_t seed;
  std::string name;
};

} // namespace rota

#endif // ROTA_RUNTIME_DATA_TOKENWINDOWS_H
