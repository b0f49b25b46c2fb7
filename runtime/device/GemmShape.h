// SPDX-License-Identifier: Apache-2.0
//
// Questions of all devices about the description of a product (RotaGemm).
#ifndef ROTA_RUNTIME_DEVICE_GEMMSHAPE_H
#define ROTA_RUNTIME_DEVICE_GEMMSHAPE_H

#include "runtime/Abi.h"

#include <cstdint>
#include <optional>
#include <string>

namespace rota {

/// Bytes of an element of ROTA_F32 or ROTA_BF16.
constexpr int64_t elementBytes(int32_t type) {
  return type == ROTA_F32 ? 4 : 2;
}

/// "gemm of 4 x 5 x 8, bf16 by bf16 to f32": m x n x k and the types.
std::string toString(const RotaGemm &gemm);

/// The fault of a description, if it has one: sizes, row distances, types.
std::optional<std::string> findFault(const RotaGemm &gemm);

} // namespace rota

#endif // ROTA_RUNTIME_DEVICE_GEMMSHAPE_H
