// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/SyntheticSource.h"
#include "runtime/random/Philox.h"

#include <algorithm>
#include <utility>

namespace rota {

SyntheticSource::SyntheticSource(TokenBounds bounds, bool validates,
                                 uint64_t seed, std::string stream)
    : kinds(std::min({bounds.vocabulary, bounds.classes, int64_t(64)})),
      validates(validates), seed(seed), stream(std::move(stream)) {}

void SyntheticSource::read(const Sequence &sequence, TokenRole role,
                           int64_t begin, int64_t count, int32_t *out) const {
  RandomStream draws(
      seed, stream + (sequence.split == Split::Train ? "" : ".validation"),
      sequence.number);
  auto jumps = [&](int64_t t) {
    return t == 0 || draws.block(static_cast<uint64_t>(t))[2] < 1u << 29;
  };
  int64_t first = begin + (role == TokenRole::Target ? 1 : 0), jump = first;
  while (!jumps(jump))
    --jump;
  int64_t token = draws.below(static_cast<uint64_t>(jump), kinds);
  token = (token + first - jump) % kinds;
  for (int64_t t = first;; ++t) {
    *out++ = static_cast<int32_t>(token);
    if (t + 1 == first + count)
      return;
    token = jumps(t + 1) ? draws.below(static_cast<uint64_t>(t + 1), kinds)
                         : (token + 1) % kinds;
  }
}

} // namespace rota
