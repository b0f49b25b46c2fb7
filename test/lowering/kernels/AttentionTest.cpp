// SPDX-License-Identifier: Apache-2.0
//
// The attention kernels against a plain loop in f64, at sizes that fill neither
// vectors nor blocks, for every vector width; and the same bits however the
// rows are split.
#include "test/lowering/kernels/AttentionTesting.h"
#include "tools/bench/CompiledOp.h"

#include <tuple>

using namespace rota::testing;
using rota::bench::CompiledOp;

namespace {

using Shape = AttentionSizes;

/// [shape, element type, processor]
class AttentionKernels : public testing::TestWithParam<
                             std::tuple<Shape, const char *, const char *>> {};

TEST_P(AttentionKernels, AgreeWithPlainLoop) {
  auto [s, type, cpu] = GetParam();
  auto forward = CompiledOp::create(forwardSource(s, type), {}, cpu);
  auto backward = CompiledOp::create(backwardSource(s, type), {}, cpu);
  ASSERT_TRUE(forward && backward);
  Buffer q = Buffer::random(type, s.queries(), 1);
  Buffer k = Buffer::random(type, s.keys(), 2);
  Buffer v = Buffer::random(type, s.keys(), 3);
  Buffer dout = Buffer::random(type, s.queries(), 4);
  Buffer out(type, s.queries()), lse("f32", s.batch * s.heads * s.sequence);
  forward->run(nullptr, {q.data(), k.data(), v.data(), out.data(), lse.data()});
  AttentionReference expected(s, q, k, v, dout);
  out.expectNear(expected.out, 2e-6, "output");
  lse.expectNear(expected.lse, 2e-6, "logsumexp");

  Buffer dq(type, s.queries()), dk(type, s.keys()), dv(type, s.keys());
  backward->run(nullptr, {dout.data(), q.data(), k.data(), v.data(), out.data(),
                          lse.data(), dq.data(), dk.data(), dv.data()});
  // The rounded output enters all but the value's cotangent, through delta.
  double tolerance = std::string(type) == "bf16" ? 1e-2 : 1e-5;
  dq.expectNear(expected.dq, tolerance, "query cotangent");
  dk.expectNear(expected.dk, tolerance, "key cotangent");
  dv.expectNear(expected.dv, 1e-5, "value cotangent");

  Buffer out2(type, s.queries()), lse2("f32", s.batch * s.heads * s.sequence);
  forward->runInPieces(
      1, {q.data(), k.data(), v.data(), out2.data(), lse2.data()});
  EXPECT_EQ(out.raw(), out2.raw());
  EXPECT_EQ(lse.raw(), lse2.raw());
  Buffer dq2(type, s.queries()), dk2(type, s.keys()), dv2(type, s.keys());
  backward->runInPieces(1,
                        {dout.data(), q.data(), k.data(), v.data(), out.data(),
                         lse.data(), dq2.data(), dk2.data(), dv2.data()});
  EXPECT_EQ(dq.raw(), dq2.raw());
  EXPECT_EQ(dk.raw(), dk2.raw());
  EXPECT_EQ(dv.raw(), dv2.raw());
}

INSTANTIATE_TEST_SUITE_P(
    All, AttentionKernels,
    testing::Combine(testing::Values(Shape{1, 1, 1, 1, 1}, Shape{2, 5, 4, 2, 3},
                                     Shape{1, 33, 2, 1, 8},
                                     Shape{2, 64, 2, 2, 64},
                                     Shape{1, 70, 6, 2, 20},
                                     Shape{1, 130, 2, 2, 96},
                                     Shape{1, 97, 1, 1, 128}),
                     testing::Values("f32", "bf16"),
                     testing::Values("native", "x86-64-v3", "x86-64-v2")),
    [](const auto &info) {
      std::string name = std::get<0>(info.param).name();
      name =
          name + "_" + std::get<1>(info.param) + "_" + std::get<2>(info.param);
      std::replace(name.begin(), name.end(), '-', '_');
      return name;
    });

TEST(AttentionKernels, LargeScoresDoNotOverflow) {
  Shape s{1, 40, 1, 1, 4};
  auto forward = CompiledOp::create(forwardSource(s, "f32"));
  ASSERT_TRUE(forward);
  Buffer q = Buffer::random("f32", s.queries(), 1, 90.0f, 100.0f);
  Buffer k = Buffer::random("f32", s.keys(), 2, -100.0f, 100.0f);
  Buffer v = Buffer::random("f32", s.keys(), 3);
  Buffer out("f32", s.queries()), lse("f32", s.sequence);
  forward->run(nullptr, {q.data(), k.data(), v.data(), out.data(), lse.data()});
  for (int64_t i = 0; i < s.queries(); ++i)
    ASSERT_LE(std::abs(out[i]), 1.0) << i;
  for (int64_t i = 0; i < s.sequence; ++i)
    ASSERT_TRUE(std::isfinite(lse[i])) << i;
}

TEST(AttentionKernels, RefuseAHeadThatDoesNotFitTheStack) {
  EXPECT_TRUE(CompiledOp::create(forwardSource({1, 1, 1, 1, 2048}, "f32")));
  EXPECT_FALSE(CompiledOp::create(forwardSource({1, 1, 1, 1, 2049}, "f32")));
  EXPECT_FALSE(CompiledOp::create(backwardSource({1, 1, 1, 1, 2049}, "f32")));
}

} // namespace
