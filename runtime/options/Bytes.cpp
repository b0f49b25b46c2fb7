// SPDX-License-Identifier: Apache-2.0
#include "runtime/options/Bytes.h"

#include <charconv>
#include <fmt/format.h>
#include <iterator>
#include <utility>

namespace rota {

std::optional<int64_t> bytesOfText(std::string_view text) {
  constexpr std::pair<std::string_view, int64_t> units[] = {
      {"", 1},
      {"B", 1},
      {"KB", 1'000},
      {"MB", 1'000'000},
      {"GB", 1'000'000'000},
      {"KiB", int64_t(1) << 10},
      {"MiB", int64_t(1) << 20},
      {"GiB", int64_t(1) << 30}};
  int64_t number = 0;
  const char *end = text.data() + text.size();
  auto [stopped, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || number < 1)
    return std::nullopt;
  std::string_view unit(stopped, static_cast<size_t>(end - stopped));
  for (auto [name, bytes] : units)
    if (unit == name && !__builtin_mul_overflow(number, bytes, &number))
      return number;
  return std::nullopt;
}

std::string bytesText(int64_t bytes, int digits) {
  constexpr const char *units[] = {"bytes", "KB", "MB", "GB", "TB"};
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  for (; value >= 1000 && unit + 1 < std::size(units); ++unit)
    value /= 1000;
  return fmt::format("{:.{}f} {}", value, unit == 0 ? 0 : digits, units[unit]);
}

} // namespace rota
