// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/WholeBatches.h"
#include "runtime/Error.h"

#include <algorithm>
#include <fmt/format.h>

namespace rota {

WholeBatches::WholeBatches(const Program &program, Tokens source)
    : tokens(std::move(source)), length(program.input.shape[1]),
      batchSequences(program.stepSequences()) {
  if (tokens.size() < 2)
    throw InputError(fmt::format("the data is shorter than a token and its "
                                 "target: expected at least 2 tokens, got {}",
                                 tokens.size()));
}

int64_t WholeBatches::batches() const {
  int64_t batch = batchSequences * length;
  return (tokens.size() - 1 + batch - 1) / batch;
}

void WholeBatches::fill(Split, int64_t first, const Destination &input,
                        const Destination &target) const {
  auto one = [&](const Destination &out, int64_t ahead, TokenRole role,
                 int32_t padding) {
    if (!out.place)
      return;
    const Part &part = out.part; // [sequences, tokens]
    auto *place = reinterpret_cast<int32_t *>(out.place);
    for (int64_t s = 0; s < part.size[0]; ++s) {
      int64_t at = (first + part.begin[0] + s) * length + part.begin[1];
      // The last token is a target alone.
      int64_t left = std::max<int64_t>(0, tokens.size() - 1 - at);
      int64_t count = std::min(part.size[1], left);
      int32_t *row = place + s * part.size[1];
      tokens.read(at + ahead, count, role, row);
      std::fill(row + count, row + part.size[1], padding);
    }
  };
  one(input, 0, TokenRole::Input, 0);
  one(target, 1, TokenRole::Target, -1);
}

std::string WholeBatches::describe() const {
  return fmt::format("{} tokens", tokens.size());
}

} // namespace rota
