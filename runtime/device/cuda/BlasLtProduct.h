// SPDX-License-Identifier: Apache-2.0
//
// One product of matrices as cuBLASLt sees it. The library's matrices are
// column-major, in which a row-major matrix is its transpose. So it computes
// C^T = op(B)^T op(A)^T: its first operand is B, its second A, and a plain
// operand is plain to it too.
#ifndef ROTA_RUNTIME_DEVICE_CUDA_BLASLTPRODUCT_H
#define ROTA_RUNTIME_DEVICE_CUDA_BLASLTPRODUCT_H

#include "runtime/Abi.h"
#include "runtime/device/cuda/BlasLtApi.h"

#include <memory>
#include <vector>

namespace rota::cuda {

/// Facts that an algorithm may rely on: addresses are multiples of the
/// alignments.
struct BlasLtLimits {
  int64_t alignmentA, alignmentB, alignmentC; // bytes
  int64_t workspaceBytes;
};

/// The addresses of one product.
struct BlasLtOperands {
  const void *a, *b;
  void *c;
  void *workspace; // a multiple of kWorkspaceAlignment
  int64_t workspaceBytes;
};

/// The alignment that cuBLASLt expects of its workspace, in bytes.
inline constexpr int64_t kWorkspaceAlignment = 256;

class BlasLtProduct {
public:
  /// `g` has no fault and is not empty. Throws RunError where cuBLASLt has no
  /// such product. The context must outlive it.
  BlasLtProduct(const BlasLtApi &api, BlasLtContext *context, const RotaGemm &g,
                bool allowTf32);

  /// Up to `most` algorithms, those first that the library expects to be
  /// faster. Only such whose sums are in f32 and in the same order each time: k
  /// is not split, or a kernel of its own adds the parts, which lie in the
  /// workspace. Throws RunError when there are none.
  std::vector<BlasLtAlgorithm> findAlgorithms(const BlasLtLimits &limits,
                                              int most) const;
  /// Whether the library knows the algorithm and that much workspace is enough.
  bool accepts(const BlasLtAlgorithm &algorithm, int64_t workspaceBytes) const;

  BlasStatus start(const BlasLtAlgorithm &algorithm,
                   const BlasLtOperands &operands, StreamHandle stream) const;
  /// Throws RunError that names the product and the call unless `status` is
  /// success.
  void check(BlasStatus status, const char *call) const;

private:
  template <typename T> using Owned = std::unique_ptr<T, BlasStatus (*)(T *)>;

  Owned<BlasLtLayout> makeLayout(int32_t type, int64_t rows, int64_t columns,
                                 int64_t distance, int64_t stride) const;

  const BlasLtApi *api;
  BlasLtContext *context;
  RotaGemm g;
  Owned<BlasLtLayout> a, b, c;
  Owned<BlasLtOperation> operation;
};

} // namespace rota::cuda

#endif // ROTA_RUNTIME_DEVICE_CUDA_BLASLTPRODUCT_H
