// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/Processor.h"

#include <gtest/gtest.h>

using namespace rota;

TEST(Processor, LacksWhatNoProcessorHas) {
  EXPECT_EQ(missingFeatures(""), "");
  EXPECT_EQ(missingFeatures("abacus"), "abacus");
  EXPECT_EQ(missingFeatures("abacus,sse3,slide-rule"), "abacus, slide-rule");
}

/// A processor with AVX2 has all that came before it.
TEST(Processor, HasItsOwnFeatures) {
  if (!__builtin_cpu_supports("avx2"))
    GTEST_SKIP() << "this processor has no AVX2";
  EXPECT_EQ(missingFeatures("sse3,ssse3,sse4.1,sse4.2,popcnt,avx,avx2"), "");
}
