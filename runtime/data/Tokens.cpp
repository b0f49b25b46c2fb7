// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/Tokens.h"

#include <algorithm>

namespace rota {

static constexpr int64_t kCheckedBytes = int64_t(64) << 20;

Tokens::Tokens(const std::vector<std::string> &paths,
               std::optional<TokenType> type, TokenBounds bounds,
               size_t keptOpen) {
  int64_t bytes = 0;
  for (const std::string &path : paths) {
    files.emplace_back(path, type, bounds, files.size() < keptOpen);
    bytes += files.back().bytes();
    firsts.push_back(firsts.back() + files.back().size());
  }
  if (bytes <= kCheckedBytes)
    for (const TokenFile &file : files)
      file.check();
}

void Tokens::read(int64_t position, int64_t count, TokenRole role,
                  int32_t *out) const {
  auto next = std::upper_bound(firsts.begin(), firsts.end(), position);
  while (count > 0) {
    size_t file = static_cast<size_t>(next - firsts.begin()) - 1;
    int64_t piece = std::min(count, *next - position);
    files[file].read(position - firsts[file], piece, role, out);
    position += piece;
    count -= piece;
    out += piece;
    ++next;
  }
}

} // namespace rota
