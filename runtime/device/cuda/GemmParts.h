// SPDX-License-Identifier: Apache-2.0
//
// A product of matrices whose rows are no whole number of accesses of 16 bytes,
// as two products.
#ifndef ROTA_RUNTIME_DEVICE_CUDA_GEMMPARTS_H
#define ROTA_RUNTIME_DEVICE_CUDA_GEMMPARTS_H

#include "runtime/Abi.h"

#include <cstdint>
#include <vector>

namespace rota::cuda {

/// Matrices of a product within those of another one: bytes to their begins.
struct GemmPart {
  RotaGemm gemm;
  int64_t a, b, c;
};

/// Two products that give what `g` does, in that order: one has whole accesses
/// of 16 bytes in every row of its matrices as they lie in memory, the other
/// the last 64 to 191 of m or n, or 8 to 15 of k. Empty where `g` has whole
/// accesses, or where no such parts exist: rows that begin elsewhere, several
/// odd sizes, a batch; or where the size is small. NVIDIA's libraries have
/// their fast kernels for whole accesses alone; a vocabulary of 50257 is the
/// usual case.
///
/// The last terms of k come first. Their sum is rounded to C's type before the
/// others are added to it; it has a few terms only, so C loses next to nothing.
std::vector<GemmPart> cutGemm(const RotaGemm &g);

} // namespace rota::cuda

#endif // ROTA_RUNTIME_DEVICE_CUDA_GEMMPARTS_H
