// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/cuda/GemmParts.h"
#include "runtime/device/GemmShape.h"

namespace rota::cuda {
namespace {

constexpr int64_t kAccessBytes = 16;
/// Below this the second product costs more than the first one gains.
constexpr int64_t kLeastCut = 1024;
/// How a size is cut: the first product has a multiple of `multiple`, the other
/// one at least `least`.
struct SizeCut {
  int64_t multiple, least;
};
/// Rows and columns: whole tiles of the library's kernels, and a rest that is
/// wide enough for kernels of matrices. Those of vectors fail on a column that
/// spans 2^31 elements, gaps included (github.com/NVIDIA/raft/issues/3097).
constexpr SizeCut kAcross = {128, 64};
/// The sum: as few terms in the rest as make no vector.
constexpr SizeCut kAlong = {8, 8};

/// A matrix as it lies in memory.
struct Stored {
  int64_t RotaGemm::*columns;
  int64_t distance; // of rows, in elements
  int64_t element;  // bytes

  bool isWhole(const RotaGemm &g) const {
    return g.*columns * element % kAccessBytes == 0;
  }
};

} // namespace

std::vector<GemmPart> cutGemm(const RotaGemm &g) {
  const Stored matrices[] = {{g.transposeA ? &RotaGemm::m : &RotaGemm::k, g.lda,
                              elementBytes(g.typeA)},
                             {g.transposeB ? &RotaGemm::k : &RotaGemm::n, g.ldb,
                              elementBytes(g.typeB)},
                             {&RotaGemm::n, g.ldc, elementBytes(g.typeC)}};
  int64_t RotaGemm::*odd = nullptr;
  for (const Stored &matrix : matrices) {
    if (matrix.distance * matrix.element % kAccessBytes != 0)
      return {};
    if (matrix.isWhole(g))
      continue;
    if (odd && odd != matrix.columns)
      return {};
    odd = matrix.columns;
  }
  if (!odd || g.batch != 1 || g.*odd < kLeastCut)
    return {};

  const SizeCut &cut = odd == &RotaGemm::k ? kAlong : kAcross;
  int64_t main = (g.*odd - cut.least) / cut.multiple * cut.multiple;
  GemmPart first{g, 0, 0, 0}, rest{g, 0, 0, 0};
  first.gemm.*odd = main;
  rest.gemm.*odd = g.*odd - main;
  auto skip = [&](const Stored &matrix, bool isOdd) {
    if (!isOdd)
      return int64_t(0);
    int64_t step = matrix.columns == odd ? 1 : matrix.distance;
    return main * step * matrix.element;
  };
  rest.a = skip(matrices[0], odd != &RotaGemm::n);
  rest.b = skip(matrices[1], odd != &RotaGemm::m);
  rest.c = skip(matrices[2], odd != &RotaGemm::k);
  if (odd != &RotaGemm::k)
    return {first, rest};
  first.gemm.accumulate = 1;
  return {rest, first};
}

} // namespace rota::cuda
