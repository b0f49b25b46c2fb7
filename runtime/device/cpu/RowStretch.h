// SPDX-License-Identifier: Apache-2.0
//
// Rows of a matrix of which a product takes some.
#ifndef ROTA_RUNTIME_DEVICE_CPU_ROWSTRETCH_H
#define ROTA_RUNTIME_DEVICE_CPU_ROWSTRETCH_H

#include <cstdint>

namespace rota {

/// Rows that lie together.
struct RowStretch {
  int64_t first = 0, count = 0;
};

} // namespace rota

#endif // ROTA_RUNTIME_DEVICE_CPU_ROWSTRETCH_H
