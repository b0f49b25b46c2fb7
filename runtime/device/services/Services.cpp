// SPDX-License-Identifier: Apache-2.0
//
// The services of runtime/Abi.h, on the context's device.
#include "runtime/device/Profile.h"
#include "runtime/device/cpu/CpuDevice.h"

#include <algorithm>

namespace rota {

static Device &deviceOf(RotaContext *context) {
  return context && context->device ? *context->device : cpuDevice();
}

} // namespace rota

void rotaLaunch(RotaContext *context, RotaKernel kernel, void *const *args,
                int64_t rows, int64_t grain) {
  rota::ProfiledScope scope(context);
  if (rows > 0)
    rota::deviceOf(context).launch(context, kernel, args, rows,
                                   std::max<int64_t>(grain, 1));
  scope.end([&](rota::Profile &profile, rota::Profile::Span span) {
    profile.addKernel(kernel, rows, span);
  });
}

void rotaGemm(RotaContext *context, const RotaGemm *gemm, const void *a,
              const void *b, void *c) {
  rota::ProfiledScope scope(context);
  rota::deviceOf(context).multiply(context, *gemm, a, b, c);
  scope.end([&](rota::Profile &profile, rota::Profile::Span span) {
    profile.addGemm(*gemm, span);
  });
}

void rotaCopy(RotaContext *context, const void *source, void *destination,
              int64_t bytes) {
  rota::deviceOf(context).copy(context, source, destination, bytes);
}

void rotaCheckIndices(RotaContext *context, const int32_t *indices,
                      int64_t count, int64_t least, int64_t bound) {
  rota::deviceOf(context).checkIndices(context, indices, count, least, bound);
}

int64_t rotaStartCollective(RotaContext *context, int64_t number,
                            const void *input, void *output) {
  return context->collectives->startInTask(static_cast<int>(number), input,
                                           output);
}

void rotaWaitCollective(RotaContext *context, int64_t started) {
  context->collectives->waitInTask(started);
}

int64_t rotaStartRowExchange(RotaContext *context, int64_t number,
                             const RotaRowExchange *exchange, const void *input,
                             const int32_t *sent, const int32_t *received,
                             void *output) {
  return context->collectives->startRowExchange(
      static_cast<int>(number), *exchange, input, sent, received, output);
}
