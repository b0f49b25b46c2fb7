// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/GemmShape.h"

#include <fmt/format.h>

namespace rota {

static const char *typeName(int32_t type) {
  return type == ROTA_F32 ? "f32" : "bf16";
}

std::string toString(const RotaGemm &g) {
  return fmt::format("gemm of {} x {} x {}, {} by {} to {}", g.m, g.n, g.k,
                     typeName(g.typeA), typeName(g.typeB), typeName(g.typeC));
}

std::optional<std::string> findFault(const RotaGemm &g) {
  if (g.batch < 0 || g.m < 0 || g.n < 0 || g.k < 0)
    return "expected sizes of at least 0";
  struct {
    const char *name;
    int64_t distance, length;
  } rows[] = {{"an A", g.lda, g.transposeA ? g.m : g.k},
              {"a B", g.ldb, g.transposeB ? g.k : g.n},
              {"a C", g.ldc, g.n}};
  for (auto [name, distance, length] : rows)
    if (distance < length)
      return fmt::format("expected {} row distance of at least {}, got {}",
                         name, length, distance);
  for (int32_t type : {g.typeA, g.typeB, g.typeC})
    if (type != ROTA_F32 && type != ROTA_BF16)
      return fmt::format("expected f32 or bf16, got type {}", type);
  return std::nullopt;
}

} // namespace rota
