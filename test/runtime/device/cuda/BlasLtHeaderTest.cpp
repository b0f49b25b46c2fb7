// SPDX-License-Identifier: Apache-2.0
//
// Our declarations of cuBLASLt against its header and its library, where they
// are installed. Neither needs a GPU.
#include "runtime/Error.h"
#include "runtime/device/cuda/BlasLtApi.h"
#include "runtime/device/cuda/BlasLtProduct.h"
#include "test/runtime/GemmCase.h"
#include "test/runtime/TemporaryFolder.h"
#include "test/runtime/device/cuda/FakeBlasLt.h"

#include <cstddef>
#include <gtest/gtest.h>
#include <type_traits>

#if __has_include(<cublasLt.h>)
#include <cublasLt.h>
#define ROTA_HAS_CUBLASLT_HEADER
#endif

using namespace rota::cuda;
using namespace rota::test;

namespace {

#ifdef ROTA_HAS_CUBLASLT_HEADER

/// Pointers are passed alike, whatever they point to, and so are integers and
/// enumerations of one size.
template <typename A, typename B> constexpr bool passesAlike() {
  return sizeof(A) == sizeof(B) &&
         std::is_pointer_v<A> == std::is_pointer_v<B> &&
         std::is_floating_point_v<A> == std::is_floating_point_v<B>;
}

template <typename A, typename B> struct CallsAlike : std::false_type {};
template <typename A, typename B, typename... As, typename... Bs>
struct CallsAlike<A (*)(As...), B (*)(Bs...)> {
  static constexpr bool value = [] {
    if constexpr (sizeof...(As) == sizeof...(Bs))
      return passesAlike<A, B>() && (passesAlike<As, Bs>() && ...);
    return false;
  }();
};

#define X(type, member, symbol, parameters)                                    \
  static_assert(                                                               \
      CallsAlike<decltype(BlasLtApi::member), decltype(&symbol)>::value);
ROTA_BLASLT_FUNCTIONS(X)
#undef X

static_assert(kBlasSuccess == CUBLAS_STATUS_SUCCESS);
static_assert(kBlasInvalidValue == CUBLAS_STATUS_INVALID_VALUE);
static_assert(kBlasNotSupported == CUBLAS_STATUS_NOT_SUPPORTED);
static_assert(kBlasF32 == CUDA_R_32F && kBlasBf16 == CUDA_R_16BF);
static_assert(kBlasComputeF32 == CUBLAS_COMPUTE_32F);
static_assert(kBlasComputeTf32 == CUBLAS_COMPUTE_32F_FAST_TF32);
static_assert(kBlasPlain == CUBLAS_OP_N && kBlasTransposed == CUBLAS_OP_T);
static_assert(kBlasLtBatchCount == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT);
static_assert(kBlasLtBatchStride ==
              CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET);
static_assert(kBlasLtTransposeA == CUBLASLT_MATMUL_DESC_TRANSA);
static_assert(kBlasLtTransposeB == CUBLASLT_MATMUL_DESC_TRANSB);
static_assert(kBlasLtMostWorkspaceBytes ==
              CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
static_assert(kBlasLtReductionSchemes ==
              CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK);
static_assert(kBlasLtAlignmentA == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES);
static_assert(kBlasLtAlignmentB == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES);
static_assert(kBlasLtAlignmentC == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES);
static_assert(kBlasLtAlignmentD == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES);
static_assert(kBlasLtReduceInPlace == CUBLASLT_REDUCTION_SCHEME_INPLACE);
static_assert(kBlasLtReduceComputeType ==
              CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);
static_assert(kBlasLtReduceOutputType == CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE);

using Found = cublasLtMatmulHeuristicResult_t;
static_assert(sizeof(BlasLtAlgorithm) == sizeof(cublasLtMatmulAlgo_t));
static_assert(sizeof(BlasLtCandidate) == sizeof(Found));
static_assert(offsetof(BlasLtCandidate, workspaceBytes) ==
              offsetof(Found, workspaceSize));
static_assert(offsetof(BlasLtCandidate, status) == offsetof(Found, state));
static_assert(offsetof(BlasLtCandidate, waves) == offsetof(Found, wavesCount));

#endif

TEST(BlasLt, DeclarationsAreThoseOfTheHeader) {
#ifndef ROTA_HAS_CUBLASLT_HEADER
  GTEST_SKIP() << "no cublasLt.h";
#endif
  // The compiler has compared them.
}

TEST(BlasLt, LibraryTakesDescriptors) {
  const BlasLtApi *api = nullptr;
  try {
    api = &loadBlasLt();
  } catch (const rota::InputError &error) {
    GTEST_SKIP() << error.what();
  }
  EXPECT_GE(api->version(), 120000u);
  EXPECT_STREQ(api->statusName(kBlasNotSupported),
               "CUBLAS_STATUS_NOT_SUPPORTED");
  RotaGemm g = describeGemm(2, 3, 4, 5, false, true, ROTA_BF16, ROTA_BF16,
                            ROTA_F32, false, 1);
  BlasLtProduct product(*api, nullptr, g, false);
  // Only the search itself needs the context.
  EXPECT_EQ(messageOf<rota::RunError>(
                [&] { product.findAlgorithms({64, 64, 64, 0}, 8); }),
            "gemm of 3 x 4 x 5, bf16 by bf16 to f32: "
            "cublasLtMatmulAlgoGetHeuristic: CUBLAS_STATUS_NOT_INITIALIZED");
}

} // namespace
