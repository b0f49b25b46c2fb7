// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/simt/EmulatedProducts.h"
#include "runtime/Error.h"
#include "runtime/device/Context.h"
#include "runtime/device/GemmShape.h"
#include "runtime/device/cpu/Gemm.h"
#include "runtime/device/simt/EmulatedContext.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

namespace rota::simt {

/// NVIDIA's products may use all of the workspace; its first bytes stand for
/// it, since all products of a stream have the same one.
static constexpr int64_t kNotedWorkspace = 256;

static std::vector<MemoryUse> usesOf(const RotaGemm &gemm, const void *a,
                                     const void *b, const void *c,
                                     const void *workspace,
                                     int64_t workspaceBytes) {
  std::vector<MemoryUse> uses;
  auto add = [&](const void *begin, bool isWrite, int64_t rows, int64_t columns,
                 int64_t pitch, int64_t stride, int32_t type) {
    int64_t size = elementBytes(type);
    for (int64_t i = 0; i < gemm.batch; ++i)
      uses.push_back({static_cast<const char *>(begin) + i * stride * size,
                      static_cast<uint64_t>(columns * size), isWrite,
                      static_cast<uint64_t>(rows),
                      static_cast<uint64_t>(pitch * size)});
  };
  auto operand = [&](const void *begin, bool transposed, int64_t rows,
                     int64_t columns, int64_t pitch, int64_t stride,
                     int32_t type) {
    if (transposed)
      std::swap(rows, columns);
    add(begin, /*isWrite=*/false, rows, columns, pitch, stride, type);
  };
  operand(a, gemm.transposeA, gemm.m, gemm.k, gemm.lda, gemm.strideA,
          gemm.typeA);
  operand(b, gemm.transposeB, gemm.k, gemm.n, gemm.ldb, gemm.strideB,
          gemm.typeB);
  add(c, /*isWrite=*/true, gemm.m, gemm.n, gemm.ldc, gemm.strideC, gemm.typeC);
  if (workspaceBytes > 0)
    uses.push_back(
        {workspace,
         static_cast<uint64_t>(std::min(workspaceBytes, kNotedWorkspace)),
         /*isWrite=*/true});
  return uses;
}

void EmulatedProducts::multiply(const RotaGemm &gemm, const void *a,
                                const void *b, void *c, void *workspace,
                                int64_t workspaceBytes,
                                cuda::StreamHandle stream) {
  std::shared_ptr<EmulatedContext> context = currentContext();
  // The stream belongs to the context, so the cores are there when it works.
  Cores *cores = context ? &context->cores : nullptr;
  auto work = [=] {
    ComputeToken token(*cores);
    RotaContext host;
    host.cores = cores;
    multiplyOnCpu(&host, gemm, a, b, c);
    if (host.failed)
      throw RunError(host.failure);
  };
  enqueueHost(stream,
              {fmt::format("product of {} x {} x {}", gemm.m, gemm.n, gemm.k),
               usesOf(gemm, a, b, c, workspace, workspaceBytes), work});
}

} // namespace rota::simt
