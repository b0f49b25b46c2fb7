// SPDX-License-Identifier: Apache-2.0
//
// Numbers of bytes as people write them.
#ifndef ROTA_RUNTIME_OPTIONS_BYTES_H
#define ROTA_RUNTIME_OPTIONS_BYTES_H

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace rota {

/// Bytes of a text such as "5GB", "500MB" (powers of 1000), "80GiB", "64KiB"
/// (powers of 1024) or "100"; none of another text, or of less than 1 byte.
std::optional<int64_t> bytesOfText(std::string_view text);

/// "53.0 GB", "1.2 MB", "100 bytes": decimal, as makers of devices count.
/// `digits`: after the point, where the unit is not a byte.
std::string bytesText(int64_t bytes, int digits = 1);

} // namespace rota

#endif // ROTA_RUNTIME_OPTIONS_BYTES_H
