// SPDX-License-Identifier: Apache-2.0
//
// Services for compiled code that the context answers alone.
#include "runtime/device/cpu/Cores.h"

#include <algorithm>
#include <fmt/format.h>

void rotaCheckIndices(RotaContext *context, const int32_t *indices,
                      int64_t count, int64_t least, int64_t bound) {
  const int32_t *end = indices + count;
  const int32_t *wrong = std::find_if(indices, end, [&](int64_t index) {
    return index < least || index >= bound;
  });
  if (wrong != end)
    rota::reportFailure(
        context, fmt::format("position {} of the data: expected a number from "
                             "{} to {}, got {}",
                             wrong - indices, std::max<int64_t>(least, 0),
                             bound - 1, *wrong));
}

void rotaCollective(RotaContext *context, int64_t number, const void *input,
                    void *output) {
  context->collectives->runInTask(static_cast<int>(number), input, output);
}
