// SPDX-License-Identifier: Apache-2.0
//
// The GPU's attention kernels on the emulator, with all checks, against a plain
// loop in f64: the same bits in any order of threads, and every barrier needed.
#include "test/lowering/gpu/EmulatedOp.h"
#include "test/lowering/kernels/AttentionTesting.h"

#include <set>

using namespace rota::testing;
using rota::lowering::GpuSynchronization;
using rota::test::EmulatedOp;

namespace {

/// The emulator's reports, one a line.
std::string run(EmulatedOp &op, const std::vector<Buffer *> &buffers,
                std::optional<uint64_t> seed = std::nullopt) {
  std::vector<char *> pointers;
  for (Buffer *buffer : buffers)
    pointers.push_back(static_cast<char *>(buffer->data()));
  std::string text;
  for (const std::string &line : op.run(pointers, seed))
    text += line + "\n";
  return text;
}

/// [sizes, element type]
class GpuAttention
    : public testing::TestWithParam<std::tuple<AttentionSizes, const char *>> {
};

/// Matrix instructions have a form of their own for warpgroups.
bool isOnMatrices(const AttentionSizes &s, const std::string &type) {
  return type == "bf16" && s.size >= 32 && s.size % 8 == 0 &&
         s.size == s.valueSize();
}

void expectPlainLoop(const AttentionSizes &s, const std::string &type,
                     const AttentionTensors &tensors) {
  AttentionReference expected(s, tensors);
  // Matrix instructions take weights that are rounded to bf16; the values that
  // they weigh are at most 1, but a value's weights may add up to more.
  bool onMatrices = isOnMatrices(s, type);
  tensors.out.expectNear(expected.out, onMatrices ? 0x1p-9 : 5e-6, "output");
  tensors.lse.expectNear(expected.lse, 5e-6, "logsumexp");
  // The rounded output enters all but the value's cotangent, through delta.
  double tolerance = type == "bf16" ? 1e-2 : 1e-5;
  tensors.dq.expectNear(expected.dq, tolerance, "query cotangent");
  tensors.dk.expectNear(expected.dk, tolerance, "key cotangent");
  tensors.dv.expectNear(expected.dv, onMatrices ? 1e-2 : 1e-5,
                        "value cotangent");
  if (s.form.sinks)
    tensors.dsinks.expectNear(expected.dsinks, tolerance, "sinks cotangent");
}

TEST_P(GpuAttention, AgreesWithPlainLoopInAllOrders) {
  auto [s, type] = GetParam();
  for (const char *chip : {"sm_80", "sm_90a"}) {
    if (chip == std::string("sm_90a") && !isOnMatrices(s, type))
      continue;
    SCOPED_TRACE(chip);
    auto forward = EmulatedOp::create(forwardSource(s, type), {}, chip);
    auto backward = EmulatedOp::create(backwardSource(s, type), {}, chip);
    ASSERT_TRUE(forward && backward);
    AttentionTensors tensors(s, type);
    ASSERT_EQ(run(*forward, tensors.forward()), "");
    ASSERT_EQ(run(*backward, tensors.backward()), "");
    expectPlainLoop(s, type, tensors);

    // A race is reported in every order: one more is enough.
    AttentionTensors again(s, type);
    ASSERT_EQ(run(*forward, again.forward(), /*seed=*/1), "");
    ASSERT_EQ(run(*backward, again.backward(), /*seed=*/1), "");
    for (size_t i = 0; i < tensors.results().size(); ++i)
      EXPECT_EQ(tensors.results()[i]->raw(), again.results()[i]->raw()) << i;
  }
}

std::string
nameOf(const testing::TestParamInfo<GpuAttention::ParamType> &info) {
  return std::get<0>(info.param).name() + "_" + std::get<1>(info.param);
}

INSTANTIATE_TEST_SUITE_P(
    All, GpuAttention,
    testing::Combine(testing::Values(AttentionSizes{1, 1, 1, 1, 16},
                                     AttentionSizes{2, 17, 4, 2, 16},
                                     AttentionSizes{1, 70, 6, 2, 20},
                                     AttentionSizes{1, 33, 2, 1, 17},
                                     AttentionSizes{1, 1, 2, 1, 64},
                                     AttentionSizes{2, 130, 2, 1, 64},
                                     AttentionSizes{1, 128, 1, 1, 128},
                                     AttentionSizes{1, 200, 2, 1, 128},
                                     AttentionSizes{1, 40, 1, 1, 256}),
                     testing::Values("f32", "bf16")),
    nameOf);

/// Heads that fill no tile: padding to fragments of 16 columns, and none.
INSTANTIATE_TEST_SUITE_P(
    Padded, GpuAttention,
    testing::Combine(testing::Values(AttentionSizes{1, 100, 2, 1, 24},
                                     AttentionSizes{1, 65, 4, 2, 32},
                                     AttentionSizes{1, 100, 1, 1, 72},
                                     AttentionSizes{2, 70, 2, 1, 80},
                                     AttentionSizes{1, 130, 2, 1, 96},
                                     AttentionSizes{1, 130, 1, 1, 136}),
                     testing::Values("bf16")),
    nameOf);

INSTANTIATE_TEST_SUITE_P(Forms, GpuAttention,
                         testing::Combine(testing::ValuesIn(attentionForms(20,
                                                                           13)),
                                          testing::Values("f32", "bf16")),
                         nameOf);

/// On matrix instructions, but for values of another size.
INSTANTIATE_TEST_SUITE_P(FormsOnMatrices, GpuAttention,
                         testing::Combine(testing::ValuesIn(attentionForms(64,
                                                                           40)),
                                          testing::Values("bf16")),
                         nameOf);

/// Several tiles within a window, and blocks that it begins and ends in; values
/// that are larger than keys, in tiles of their own.
INSTANTIATE_TEST_SUITE_P(
    LongForms, GpuAttention,
    testing::Combine(
        testing::Values(
            AttentionSizes{1, 300, 2, 1, 64, {.window = 100, .sinks = true}},
            AttentionSizes{1, 300, 1, 1, 136, {.window = 65, .softCap = 0.8}},
            AttentionSizes{
                1, 290, 1, 1, 32, {.window = 70, .bidirectional = true}},
            AttentionSizes{1, 256, 1, 1, 64, {.bidirectional = true}},
            AttentionSizes{1, 300, 1, 1, 64, {.documents = 110}},
            AttentionSizes{1, 256, 1, 1, 136, {.documents = 64}},
            AttentionSizes{1, 70, 1, 1, 24, {.valueSize = 256}},
            AttentionSizes{1, 70, 1, 1, 192, {.valueSize = 128}}),
        testing::Values("f32", "bf16")),
    nameOf);

/// Sources and buffers of an op.
struct TestedOp {
  std::string (*source)(const AttentionSizes &, const std::string &);
  std::vector<Buffer *> (AttentionTensors::*buffers)();
};
constexpr TestedOp kForward = {forwardSource, &AttentionTensors::forward};
constexpr TestedOp kBackward = {backwardSource, &AttentionTensors::backward};

/// Each instruction of that kind in the op's kernels in turn is left out: at
/// some length there is a report.
void expectAllNeeded(const TestedOp &tested, int64_t size,
                     const std::string &type, GpuSynchronization kind,
                     const std::string &chip = "sm_80") {
  SCOPED_TRACE(testing::Message() << tested.source({1, 1, 1, 1, size}, type)
                                  << " on " << chip << ", kind " << int(kind));
  std::set<unsigned> unneeded;
  for (int64_t length : {17, 200}) {
    AttentionSizes s = {1, length, length < 64 ? 2 : 1, 1, size};
    auto op = EmulatedOp::create(tested.source(s, type), {}, chip);
    ASSERT_TRUE(op);
    unsigned count = op->count(kind);
    EXPECT_GT(count, 0u);
    if (unneeded.empty())
      for (unsigned i = 0; i < count; ++i)
        unneeded.insert(i);
    for (unsigned i : std::set<unsigned>(unneeded)) {
      op->leaveOut({kind, i});
      AttentionTensors tensors(s, type);
      if (!run(*op, (tensors.*tested.buffers)(), 3).empty())
        unneeded.erase(i);
    }
    if (unneeded.empty())
      return;
  }
  for (unsigned i : unneeded)
    ADD_FAILURE() << "number " << i << " is not needed";
}

TEST(GpuAttentionWaits, AreAllNeeded) {
  expectAllNeeded(kForward, 8, "f32", GpuSynchronization::Barrier);
  expectAllNeeded(kBackward, 8, "f32", GpuSynchronization::Barrier);
  expectAllNeeded(kBackward, 8, "f32", GpuSynchronization::WarpBarrier);
}

TEST(GpuAttentionWaits, AreAllNeededOnMatrices) {
  for (auto kind :
       {GpuSynchronization::Barrier, GpuSynchronization::WarpBarrier,
        GpuSynchronization::CopyWait}) {
    expectAllNeeded(kForward, 64, "bf16", kind);
    expectAllNeeded(kBackward, 64, "bf16", kind);
    expectAllNeeded(kBackward, 80, "bf16", kind);
    expectAllNeeded(kBackward, 136, "bf16", kind);
  }
}

TEST(GpuAttentionWaits, AreAllNeededOfWarpgroups) {
  for (const TestedOp &tested : {kForward, kBackward})
    for (auto kind :
         {GpuSynchronization::WarpgroupWait, GpuSynchronization::Barrier})
      expectAllNeeded(tested, 64, "bf16", kind, "sm_90a");
}

TEST(GpuAttentionWaits, OfSumsAreReported) {
  AttentionSizes s = {1, 200, 1, 1, 64};
  auto op = EmulatedOp::create(forwardSource(s, "bf16"), {}, "sm_90a");
  ASSERT_TRUE(op);
  AttentionTensors tensors(s, "bf16");
  EXPECT_EQ(run(*op, tensors.forward()), "");
  op->leaveOut({GpuSynchronization::WarpgroupWait, 0});
  std::string reports = run(*op, tensors.forward());
  EXPECT_NE(reports.find("(sums): product of a warpgroup: uses the sums of "),
            std::string::npos)
      << reports;
}

/// Scores of some thousands.
TEST(GpuAttentionScores, MayBeLarge) {
  for (auto [size, type, window] : {std::tuple(8, "f32", 0),
                                    {64, "bf16", 0},
                                    {8, "f32", 3},
                                    {64, "bf16", 3}}) {
    AttentionSizes s{1, 70, 1, 1, size, {.window = window}};
    auto forward = EmulatedOp::create(forwardSource(s, type));
    ASSERT_TRUE(forward);
    AttentionTensors tensors(s, type);
    tensors.q = Buffer::random(type, s.queries(), 1, 90.0f, 100.0f);
    tensors.k = Buffer::random(type, s.keys(), 2, -100.0f, 100.0f);
    ASSERT_EQ(run(*forward, tensors.forward()), "");
    for (int64_t i = 0; i < s.queries(); ++i)
      ASSERT_LE(std::abs(tensors.out[i]), 1.0) << i;
    for (int64_t i = 0; i < s.sequence; ++i)
      ASSERT_TRUE(std::isfinite(tensors.lse[i])) << i;
    auto backward = EmulatedOp::create(backwardSource(s, type));
    ASSERT_TRUE(backward);
    ASSERT_EQ(run(*backward, tensors.backward()), "");
    // Each value has at most all of every query's weight.
    for (int64_t i = 0; i < s.keys(); ++i)
      ASSERT_LE(std::abs(tensors.dv[i]), 1.01 * s.sequence) << i;
    for (int64_t i = 0; i < s.queries(); ++i)
      ASSERT_TRUE(std::isfinite(tensors.dq[i]) && std::isfinite(tensors.dk[i]))
          << i;
  }
}

} // namespace
