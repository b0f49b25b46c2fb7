// SPDX-License-Identifier: Apache-2.0
//
// The part of cuBLASLt that the runtime calls, declared here so that neither
// the compiler nor a trainer needs the CUDA Toolkit. The layouts and numbers
// are those of cublasLt.h, which are the same in versions 12 and 13.
#ifndef ROTA_RUNTIME_DEVICE_CUDA_BLASLTAPI_H
#define ROTA_RUNTIME_DEVICE_CUDA_BLASLTAPI_H

#include "runtime/device/cuda/DriverApi.h"

#include <cstddef>
#include <cstdint>

namespace rota::cuda {

// Objects of the library.
struct BlasLtContext;
struct BlasLtLayout;     // a matrix in memory
struct BlasLtOperation;  // transposes and types of a product
struct BlasLtPreference; // limits the choice of algorithms

using BlasStatus = int; // cublasStatus_t
inline constexpr BlasStatus kBlasSuccess = 0;
inline constexpr BlasStatus kBlasNotSupported = 15;

// cudaDataType_t, cublasComputeType_t, cublasOperation_t
inline constexpr int kBlasF32 = 0;
inline constexpr int kBlasBf16 = 14;
inline constexpr int kBlasComputeF32 = 68;
inline constexpr int kBlasComputeTf32 = 77;
inline constexpr int32_t kBlasPlain = 0;
inline constexpr int32_t kBlasTransposed = 1;

// cublasLtMatrixLayoutAttribute_t: int32_t, int64_t
inline constexpr int kBlasLtBatchCount = 5;
inline constexpr int kBlasLtBatchStride = 6;
// cublasLtMatmulDescAttributes_t: int32_t
inline constexpr int kBlasLtTransposeA = 3;
inline constexpr int kBlasLtTransposeB = 4;
// cublasLtMatmulPreferenceAttributes_t: uint64_t, uint32_t
inline constexpr int kBlasLtMostWorkspaceBytes = 1;
inline constexpr int kBlasLtReductionSchemes = 3;
inline constexpr int kBlasLtAlignmentA = 5;
inline constexpr int kBlasLtAlignmentB = 6;
inline constexpr int kBlasLtAlignmentC = 7;
inline constexpr int kBlasLtAlignmentD = 8;
// cublasLtReductionScheme_t: how the parts of a sum are added where k is split.
inline constexpr uint32_t kBlasLtReduceComputeType = 2;

/// cublasLtMatmulAlgo_t: bytes that mean the same to the same version of the
/// library, also in another process.
struct BlasLtAlgorithm {
  uint64_t data[8];
  bool operator==(const BlasLtAlgorithm &) const = default;
};

/// cublasLtMatmulHeuristicResult_t
struct BlasLtCandidate {
  BlasLtAlgorithm algorithm;
  size_t workspaceBytes;
  BlasStatus status;
  float waves;
  int reserved[4];
};

/// X(type of the result, member, symbol of the library, parameters)
#define ROTA_BLASLT_FUNCTIONS(X)                                               \
  X(BlasStatus, create, cublasLtCreate, (BlasLtContext * *context))            \
  X(BlasStatus, destroy, cublasLtDestroy, (BlasLtContext * context))           \
  X(size_t, version, cublasLtGetVersion, ())                                   \
  X(const char *, statusName, cublasLtGetStatusName, (BlasStatus status))      \
  X(BlasStatus, createLayout, cublasLtMatrixLayoutCreate,                      \
    (BlasLtLayout * *layout, int type, uint64_t rows, uint64_t columns,        \
     int64_t leading))                                                         \
  X(BlasStatus, destroyLayout, cublasLtMatrixLayoutDestroy,                    \
    (BlasLtLayout * layout))                                                   \
  X(BlasStatus, setLayout, cublasLtMatrixLayoutSetAttribute,                   \
    (BlasLtLayout * layout, int attribute, const void *value, size_t bytes))   \
  X(BlasStatus, createOperation, cublasLtMatmulDescCreate,                     \
    (BlasLtOperation * *operation, int computeType, int scaleType))            \
  X(BlasStatus, destroyOperation, cublasLtMatmulDescDestroy,                   \
    (BlasLtOperation * operation))                                             \
  X(BlasStatus, setOperation, cublasLtMatmulDescSetAttribute,                  \
    (BlasLtOperation * operation, int attribute, const void *value,            \
     size_t bytes))                                                            \
  X(BlasStatus, createPreference, cublasLtMatmulPreferenceCreate,              \
    (BlasLtPreference * *preference))                                          \
  X(BlasStatus, destroyPreference, cublasLtMatmulPreferenceDestroy,            \
    (BlasLtPreference * preference))                                           \
  X(BlasStatus, setPreference, cublasLtMatmulPreferenceSetAttribute,           \
    (BlasLtPreference * preference, int attribute, const void *value,          \
     size_t bytes))                                                            \
  X(BlasStatus, findAlgorithms, cublasLtMatmulAlgoGetHeuristic,                \
    (BlasLtContext * context, BlasLtOperation * operation, BlasLtLayout * a,   \
     BlasLtLayout * b, BlasLtLayout * c, BlasLtLayout * d,                     \
     BlasLtPreference * preference, int most, BlasLtCandidate *candidates,     \
     int *count))                                                              \
  X(BlasStatus, checkAlgorithm, cublasLtMatmulAlgoCheck,                       \
    (BlasLtContext * context, BlasLtOperation * operation, BlasLtLayout * a,   \
     BlasLtLayout * b, BlasLtLayout * c, BlasLtLayout * d,                     \
     const BlasLtAlgorithm *algorithm, BlasLtCandidate *result))               \
  X(BlasStatus, multiply, cublasLtMatmul,                                      \
    (BlasLtContext * context, BlasLtOperation * operation, const void *alpha,  \
     const void *a, BlasLtLayout *layoutA, const void *b,                      \
     BlasLtLayout *layoutB, const void *beta, const void *c,                   \
     BlasLtLayout *layoutC, void *d, BlasLtLayout *layoutD,                    \
     const BlasLtAlgorithm *algorithm, void *workspace, size_t workspaceBytes, \
     StreamHandle stream))

struct BlasLtApi {
#define X(type, member, symbol, parameters) type(*member) parameters = nullptr;
  ROTA_BLASLT_FUNCTIONS(X)
#undef X
};

/// The functions of libcublasLt.so.13 or .12, which is loaded once. Throws
/// InputError that says what is missing: the library, one of its functions.
const BlasLtApi &loadBlasLt();

} // namespace rota::cuda

#endif // ROTA_RUNTIME_DEVICE_CUDA_BLASLTAPI_H
