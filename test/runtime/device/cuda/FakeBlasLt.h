// SPDX-License-Identifier: Apache-2.0
//
// cuBLASLt and the part of the driver that products use, on the host: matrices
// are column-major as in the library, and a clock takes the place of the GPU's.
#ifndef ROTA_TEST_RUNTIME_DEVICE_CUDA_FAKEBLASLT_H
#define ROTA_TEST_RUNTIME_DEVICE_CUDA_FAKEBLASLT_H

#include "runtime/device/cuda/BlasLtApi.h"
#include "runtime/device/cuda/DriverApi.h"

#include <cstdint>
#include <functional>
#include <vector>

namespace rota::test {

// State that only the library itself knows.
inline constexpr cuda::BlasStatus kBlasInvalidValue = 7;
inline constexpr cuda::BlasStatus kBlasExecutionFailed = 13;
inline constexpr cuda::Result kIllegalAddress = 700;
inline constexpr uint32_t kBlasLtReduceInPlace = 1;
inline constexpr uint32_t kBlasLtReduceOutputType = 4;

/// All compute the same; `number` is the whole of a BlasLtAlgorithm.
struct FakeAlgorithm {
  uint64_t number;
  float milliseconds;
  int64_t workspaceBytes = 0;
  uint32_t reduction = 0; // cublasLtReductionScheme_t
  uint32_t alignments[3] = {1, 1,
                            1}; // alignments of the library's A, B, C, in bytes
  bool isRefused = false;       // by cublasLtMatmul
  bool isFatal = false;         // the GPU fails, and does nothing from then on
  float oddMilliseconds = 0;    // more where long rows are no whole 16 bytes
};

/// One at a time. Expects at its end that all that was made was destroyed.
class FakeBlasLt {
public:
  FakeBlasLt();
  ~FakeBlasLt();
  FakeBlasLt(const FakeBlasLt &) = delete;
  FakeBlasLt &operator=(const FakeBlasLt &) = delete;

  /// As loadBlasLt.
  std::function<const cuda::BlasLtApi &()> loader() {
    return [this]() -> const cuda::BlasLtApi & {
      ++opened;
      return api;
    };
  }

  cuda::BlasLtApi api;
  cuda::DriverApi driver;

  /// In the order in which the library proposes them.
  std::vector<FakeAlgorithm> algorithms = {{1, 1.0f}};
  /// A product with that many rows or columns in a matrix has no algorithm, or
  /// fails with each.
  int64_t unknownSize = 0, failingSize = 0;
  bool isCaptured = false;
  cuda::Result allocation = cuda::kSuccess; // result of an allocation

  bool isBroken = false;      // the GPU has failed
  int opened = 0;             // calls of the loader
  int live = 0;               // objects and allocations
  int searches = 0;           // calls of cublasLtMatmulAlgoGetHeuristic
  int computeType = 0;        // type of the last product
  std::vector<uint64_t> used; // algorithms, in the order of their runs
  float milliseconds = 0.0f;  // the clock
};

} // namespace rota::test

#endif // ROTA_TEST_RUNTIME_DEVICE_CUDA_FAKEBLASLT_H
