// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/simt/EmulatedProducts.h"
#include "runtime/Error.h"
#include "runtime/device/Context.h"
#include "runtime/device/cpu/Gemm.h"
#include "runtime/device/simt/EmulatedContext.h"

namespace rota::simt {

void EmulatedProducts::multiply(const RotaGemm &gemm, const void *a,
                                const void *b, void *c, void *, int64_t,
                                cuda::StreamHandle stream) {
  std::shared_ptr<EmulatedContext> context = currentContext();
  // The stream belongs to the context, so the cores are there when it works.
  Cores *cores = context ? &context->cores : nullptr;
  enqueueHost(stream, [=] {
    ComputeToken token(*cores);
    RotaContext host;
    host.cores = cores;
    multiplyOnCpu(&host, gemm, a, b, c);
    if (host.failed)
      throw RunError(host.failure);
  });
}

} // namespace rota::simt
