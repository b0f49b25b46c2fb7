// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/TokenWindows.h"
#include "runtime/data/Permutation.h"

#include <algorithm>
#include <utility>

namespace rota {

TokenWindows::TokenWindows(std::vector<int64_t> boundaries, int64_t length,
                           uint64_t seed, std::string name)
    : boundaries(std::move(boundaries)), length(length), seed(seed),
      name(std::move(name)) {
  for (size_t f = 0; f + 1 < this->boundaries.size(); ++f) {
    int64_t tokens = this->boundaries[f + 1] - this->boundaries[f];
    firsts.push_back(firsts.back() +
                     (tokens > length ? (tokens - 1) / length : 0));
  }
}

int64_t TokenWindows::unusedFiles() const {
  int64_t unused = 0;
  for (size_t f = 0; f + 1 < firsts.size(); ++f)
    unused += firsts[f] == firsts[f + 1];
  return unused;
}

int64_t TokenWindows::position(int64_t sequence) const {
  int64_t epoch = sequence / count();
  Permutation order(count(), RandomStream(seed, name, epoch));
  int64_t window = order.at(sequence % count());
  // The bound skips files without windows, which have the next file's first.
  auto next = std::upper_bound(firsts.begin(), firsts.end(), window);
  auto file = static_cast<size_t>(next - firsts.begin()) - 1;
  int64_t tokens = boundaries[file + 1] - boundaries[file];
  int64_t phase = RandomStream(seed, name + ".phase", epoch)
                      .below(file, (tokens - 1) % length + 1);
  return boundaries[file] + phase + (window - firsts[file]) * length;
}

} // namespace rota
