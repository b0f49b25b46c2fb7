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
/// what is left of m, n or k. Empty where `g` has whole accesses, or where no
/// such parts exist: rows that begin elsewhere, several odd sizes, a batch; or
/// where the size is small. NVIDIA's libraries have their fast kernels for
/// whole accesses alone; a vocabulary of 50257 is the usual case.
///
/// A part of k comes first that is added to C rounded to C's type; it has a few
/// terms only, so the sum loses next to nothing.
std::vector<GemmPart> cutGemm(const RotaGemm &g);

} // namespace rota::cuda

#endif // ROTA_RUNTIME_DEVICE_CUDA_GEMMPARTS_H
