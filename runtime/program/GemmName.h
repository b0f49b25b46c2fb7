// SPDX-License-Identifier: Apache-2.0
//
// The name of a product, for tables of `--profile` and of plans.
#ifndef ROTA_RUNTIME_PROGRAM_GEMMNAME_H
#define ROTA_RUNTIME_PROGRAM_GEMMNAME_H

#include "runtime/Abi.h"

#include <fmt/format.h>
#include <string>

namespace rota {

/// "gemm 1x65536x768x768 NT bf16 accumulate": batch, m, n, k, what is
/// transposed, and the type of A.
inline std::string gemmName(const RotaGemm &gemm) {
  return fmt::format("gemm {}x{}x{}x{} {}{}{}{}", gemm.batch, gemm.m, gemm.n,
                     gemm.k, gemm.transposeA ? "T" : "N",
                     gemm.transposeB ? "T" : "N",
                     gemm.typeA == ROTA_BF16 ? " bf16" : " f32",
                     gemm.accumulate ? " accumulate" : "");
}

/// A multiply-add counts two.
inline double gemmOperations(const RotaGemm &gemm) {
  return 2.0 * static_cast<double>(gemm.batch) * static_cast<double>(gemm.m) *
         static_cast<double>(gemm.n) * static_cast<double>(gemm.k);
}

} // namespace rota

#endif // ROTA_RUNTIME_PROGRAM_GEMMNAME_H
