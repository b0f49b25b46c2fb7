// SPDX-License-Identifier: Apache-2.0
//
// The kernels that are measured, and the costs beside which their times stand.
#include "tools/measure/OpSources.h"
#include "tools/bench/CompiledOp.h"

#include <gtest/gtest.h>

using namespace rota;

namespace {

TEST(OpSources, KernelsOfRowsHaveTheCostsOfTheirArithmetic) {
  constexpr RowSizes sizes = {.tokens = 4, .width = 32, .vocabulary = 64};
  for (const char *type : {"f32", "bf16"})
    for (const std::string &source : rowSources(type, sizes)) {
      auto op = bench::CompiledOp::create(source);
      ASSERT_TRUE(op) << source;
      EXPECT_GE(op->cost().flops, 3 * sizes.tokens * sizes.width) << source;
      EXPECT_GT(op->cost().specialFunctions, 0) << source;
    }
}

TEST(OpSources, AnUpdateChangesThreeTensors) {
  auto op = bench::CompiledOp::create(updateSource(1));
  ASSERT_TRUE(op);
  EXPECT_EQ(op->buffers().size(), 7u);
  EXPECT_EQ(op->cost().flops, 3 * 1024);
}

} // namespace
