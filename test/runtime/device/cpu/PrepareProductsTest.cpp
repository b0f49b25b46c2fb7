// SPDX-License-Identifier: Apache-2.0
//
// Tasks run before a run without any of their work, and their products are the
// same afterwards.
#include "runtime/device/cpu/PrepareProducts.h"
#include "runtime/device/Context.h"
#include "runtime/device/cpu/CpuDevice.h"
#include "test/runtime/GemmCase.h"

#include <gtest/gtest.h>

using namespace rota;
using namespace rota::test;

namespace {

void fail(void *const *, int64_t, int64_t) { FAIL() << "a kernel has run"; }

TEST(PrepareProducts, DoesNoneOfTheWorkOfTasks) {
  Cores cores(2);
  ComputeToken token(cores);
  RotaContext context;
  context.cores = &cores;
  int runs = 0;
  for (int32_t type : {ROTA_F32, ROTA_BF16}) {
    RotaGemm g = describeGemm(2, 600, 520, 40, false, true, type, type,
                              ROTA_F32, false, 1);
    prepareProductsOnCpu(&context, [&](RotaContext *tasks) {
      rotaLaunch(tasks, toKernel(fail), nullptr, 4, 1);
      rotaGemm(tasks, &g, nullptr, nullptr, nullptr);
      rotaCopy(tasks, nullptr, nullptr, 64);
      rotaCheckIndices(tasks, nullptr, 4, 0, 1);
      rotaWaitCollective(tasks,
                         rotaStartCollective(tasks, 0, nullptr, nullptr));
      ++runs;
    });
    EXPECT_FALSE(context.failed) << context.failure;
    Operands in(g);
    Buffer c = in.c;
    rotaGemm(&context, &g, in.a.bytes.data(), in.b.bytes.data(),
             c.bytes.data());
    expectProduct(g, in, c);
  }
  EXPECT_EQ(runs, 2);
}

} // namespace
