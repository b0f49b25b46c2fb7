// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/WholeBatches.h"
#include "runtime/Error.h"

#include <fmt/format.h>

namespace rota {

WholeBatches::WholeBatches(const Program &program, Tokens source)
    : tokens(std::move(source)), sequences(program.input.shape[0]),
      length(program.input.shape[1]), microbatches(program.stepMicrobatches()),
      count((tokens.size() - 1) / (microbatches * sequences * length)) {
  if (count == 0)
    throw InputError(fmt::format(
        "the data is shorter than a batch and its last target: expected at "
        "least {} tokens, got {}",
        microbatches * sequences * length + 1, tokens.size()));
}

void WholeBatches::fill(Split, int64_t batch, int64_t microbatch,
                        const Destination &input,
                        const Destination &target) const {
  int64_t first = (batch * microbatches + microbatch) * sequences;
  auto one = [&](const Destination &out, int64_t ahead, TokenRole role) {
    if (!out.place)
      return;
    const Part &part = out.part; // [sequences, tokens]
    auto *place = reinterpret_cast<int32_t *>(out.place);
    for (int64_t s = 0; s < part.size[0]; ++s)
      tokens.read((first + part.begin[0] + s) * length + part.begin[1] + ahead,
                  part.size[1], role, place + s * part.size[1]);
  };
  one(input, 0, TokenRole::Input);
  one(target, 1, TokenRole::Target);
}

std::string WholeBatches::describe() const {
  return fmt::format("{} tokens", tokens.size());
}

} // namespace rota
