// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/cuda/BlasLtProduct.h"
#include "runtime/Error.h"
#include "runtime/device/GemmShape.h"

#include <fmt/format.h>

namespace rota::cuda {

static int libraryType(int32_t type) {
  return type == ROTA_F32 ? kBlasF32 : kBlasBf16;
}

/// The library has no product of an f32 and a bf16 matrix, and none of f32
/// matrices with a bf16 result.
static bool isKnown(const RotaGemm &g) {
  return g.typeA == g.typeB && (g.typeC == g.typeA || g.typeC == ROTA_F32);
}

/// A function that sets an attribute of `object`, of the type that the library
/// expects, or throws.
template <typename T>
static auto setterOf(const BlasLtProduct &product, const char *call, T *object,
                     BlasStatus (*set)(T *, int, const void *, size_t)) {
  return [=, &product](int attribute, const auto &value) {
    product.check(set(object, attribute, &value, sizeof value), call);
  };
}

BlasLtProduct::BlasLtProduct(const BlasLtApi &api, BlasLtContext *context,
                             const RotaGemm &g, bool allowTf32)
    : api(&api), context(context), g(g), a(nullptr, api.destroyLayout),
      b(nullptr, api.destroyLayout), c(nullptr, api.destroyLayout),
      operation(nullptr, api.destroyOperation) {
  if (!isKnown(g))
    throw RunError(toString(g) + ": cuBLASLt has no product of these types");
  // Rows and columns as stored, in row-major order.
  a = makeLayout(g.typeA, g.transposeA ? g.k : g.m, g.transposeA ? g.m : g.k,
                 g.lda, g.strideA);
  b = makeLayout(g.typeB, g.transposeB ? g.n : g.k, g.transposeB ? g.k : g.n,
                 g.ldb, g.strideB);
  c = makeLayout(g.typeC, g.m, g.n, g.ldc, g.strideC);

  bool isTf32 = allowTf32 && g.typeA == ROTA_F32;
  BlasLtOperation *made = nullptr;
  check(api.createOperation(&made, isTf32 ? kBlasComputeTf32 : kBlasComputeF32,
                            kBlasF32),
        "cublasLtMatmulDescCreate");
  operation.reset(made);
  auto set =
      setterOf(*this, "cublasLtMatmulDescSetAttribute", made, api.setOperation);
  set(kBlasLtTransposeA, g.transposeB ? kBlasTransposed : kBlasPlain);
  set(kBlasLtTransposeB, g.transposeA ? kBlasTransposed : kBlasPlain);
}

BlasLtProduct::Owned<BlasLtLayout>
BlasLtProduct::makeLayout(int32_t type, int64_t rows, int64_t columns,
                          int64_t distance, int64_t stride) const {
  BlasLtLayout *made = nullptr;
  check(api->createLayout(&made, libraryType(type), columns, rows, distance),
        "cublasLtMatrixLayoutCreate");
  Owned<BlasLtLayout> layout(made, api->destroyLayout);
  auto set =
      setterOf(*this, "cublasLtMatrixLayoutSetAttribute", made, api->setLayout);
  set(kBlasLtBatchCount, static_cast<int32_t>(g.batch));
  set(kBlasLtBatchStride, stride);
  return layout;
}

std::vector<BlasLtAlgorithm>
BlasLtProduct::findAlgorithms(const BlasLtLimits &limits, int most) const {
  BlasLtPreference *made = nullptr;
  check(api->createPreference(&made), "cublasLtMatmulPreferenceCreate");
  Owned<BlasLtPreference> preference(made, api->destroyPreference);
  auto set = setterOf(*this, "cublasLtMatmulPreferenceSetAttribute", made,
                      api->setPreference);
  set(kBlasLtMostWorkspaceBytes, static_cast<uint64_t>(limits.workspaceBytes));
  // The others round the parts to the type of C. The order in which parts are
  // added in place is not documented.
  set(kBlasLtReductionSchemes, kBlasLtReduceComputeType);
  set(kBlasLtAlignmentA, static_cast<uint32_t>(limits.alignmentB));
  set(kBlasLtAlignmentB, static_cast<uint32_t>(limits.alignmentA));
  set(kBlasLtAlignmentC, static_cast<uint32_t>(limits.alignmentC));
  set(kBlasLtAlignmentD, static_cast<uint32_t>(limits.alignmentC));

  std::vector<BlasLtCandidate> candidates(most);
  int count = 0;
  check(api->findAlgorithms(context, operation.get(), b.get(), a.get(), c.get(),
                            c.get(), made, most, candidates.data(), &count),
        "cublasLtMatmulAlgoGetHeuristic");
  std::vector<BlasLtAlgorithm> found;
  for (int i = 0; i < count; ++i)
    if (candidates[i].status == kBlasSuccess)
      found.push_back(candidates[i].algorithm);
  if (found.empty())
    check(kBlasNotSupported, "cublasLtMatmulAlgoGetHeuristic");
  return found;
}

bool BlasLtProduct::accepts(const BlasLtAlgorithm &algorithm,
                            int64_t workspaceBytes) const {
  BlasLtCandidate result = {};
  return api->checkAlgorithm(context, operation.get(), b.get(), a.get(),
                             c.get(), c.get(), &algorithm,
                             &result) == kBlasSuccess &&
         result.workspaceBytes <= static_cast<size_t>(workspaceBytes);
}

BlasStatus BlasLtProduct::start(const BlasLtAlgorithm &algorithm,
                                const BlasLtOperands &at,
                                StreamHandle stream) const {
  // Read before the call returns.
  float alpha = 1.0f, beta = g.accumulate ? 1.0f : 0.0f;
  return api->multiply(context, operation.get(), &alpha, at.b, b.get(), at.a,
                       a.get(), &beta, at.c, c.get(), at.c, c.get(), &algorithm,
                       at.workspace, static_cast<size_t>(at.workspaceBytes),
                       stream);
}

void BlasLtProduct::check(BlasStatus status, const char *call) const {
  if (status != kBlasSuccess)
    throw RunError(
        fmt::format("{}: {}: {}", toString(g), call, api->statusName(status)));
}

} // namespace rota::cuda
