// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/FullExperts.h"

#include <fmt/format.h>

namespace rota {

std::string toString(const FullExperts &full) {
  return fmt::format("rows of experts {} to {} in sequence {} of a microbatch: "
                     "expected at most {}, got {}",
                     full.firstExpert, full.firstExpert + full.experts - 1,
                     full.sequence, full.room, full.rows);
}

} // namespace rota
