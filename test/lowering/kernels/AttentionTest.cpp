// SPDX-License-Identifier: Apache-2.0
//
// The attention kernels against a plain loop in f64, at sizes that fill neither
// vectors nor blocks, for every vector width; and the same bits however the
// rows are split.
#include "runtime/device/cpu/TileProduct.h"
#include "test/lowering/kernels/AttentionTesting.h"
#include "test/lowering/kernels/CompileOp.h"
#include "test/runtime/device/cpu/EmulatedTiles.h"

#include <optional>
#include <tuple>

using namespace rota::testing;
using rota::lowering::PairProducts;

namespace {

using Shape = AttentionSizes;

/// How attention multiplies: as the processor does with "f32" or "bf16"; by
/// emulated "pairs" of bf16; by "tiles" in plain C++; by "vectors", as with AMX
/// that the system refuses; with "amx", whose instructions are emulated on a
/// processor without it.
class Products {
public:
  explicit Products(const std::string &form) : form(form) {
    if (form == "tiles")
      tiles = &rota::kTilesOf<rota::test::panelKernelsOfTiles>;
    else if (form == "vectors" && hasPairs)
      tiles = &rota::kTilesOf<rota::tileKernelsOfAvx512>;
    else if (form == "amx" && hasVectors && hasAmx == rota::mayUseAmx())
      tiles = &rota::kTilesOf<rota::panelKernelsOfAmx>;
    if (form == "amx" && !hasAmx)
      emulator.emplace();
  }
  ~Products() { EXPECT_FALSE(rota::test::TileRegisters::get().isConfigured()); }

  bool isAvailable() const { return tiles || !takesTiles(); }
  std::string element() const { return form == "f32" ? "f32" : "bf16"; }
  std::unique_ptr<rota::bench::CompiledOp> compile(const std::string &source,
                                                   const char *cpu = "native") {
    auto op = compileOp(source, {}, cpu, pairs());
    if (op && tiles)
      op->setTiles(*tiles);
    return op;
  }

private:
  bool takesTiles() const {
    return form == "tiles" || form == "vectors" || form == "amx";
  }
  std::optional<PairProducts> pairs() const {
    if (form == "pairs")
      return PairProducts::Emulated;
    if (!takesTiles())
      return std::nullopt;
    bool isNative = form != "tiles" && hasPairs;
    return isNative ? PairProducts::Tiles : PairProducts::EmulatedTiles;
  }

  bool hasVectors =
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
  bool hasPairs = hasVectors && __builtin_cpu_supports("avx512bf16");
  bool hasAmx = rota::hasAmx();
  std::string form;
  const RotaTiles *tiles = nullptr;
  std::optional<rota::test::EmulatedAmx> emulator;
};

std::vector<void *> pointersOf(const std::vector<Buffer *> &buffers) {
  std::vector<void *> pointers;
  for (Buffer *buffer : buffers)
    pointers.push_back(buffer->data());
  return pointers;
}

/// [shape, form of products, processor]
class AttentionKernels : public testing::TestWithParam<
                             std::tuple<Shape, const char *, const char *>> {};

TEST_P(AttentionKernels, AgreeWithPlainLoop) {
  auto [s, form, cpu] = GetParam();
  Products products(form);
  if (!products.isAvailable())
    GTEST_SKIP() << "this processor, or system, lacks what '" << form
                 << "' needs";
  std::string type = products.element();
  auto forward = products.compile(forwardSource(s, type), cpu);
  auto backward = products.compile(backwardSource(s, type), cpu);
  ASSERT_TRUE(forward && backward);
  // In pairs the weights are rounded.
  bool pairs = type == "bf16" && forward->pairs() != PairProducts::None;
  AttentionTensors tensors(s, type), again(s, type);
  forward->run(nullptr, pointersOf(tensors.forward()));
  AttentionReference expected(s, tensors);
  tensors.out.expectNear(expected.out, pairs ? 2e-3 : 2e-6, "output");
  tensors.lse.expectNear(expected.lse, 2e-6, "logsumexp");

  backward->run(nullptr, pointersOf(tensors.backward()));
  // The rounded output enters all but the value's cotangent, through delta.
  double tolerance = type == "bf16" ? 1e-2 : 1e-5;
  tensors.dq.expectNear(expected.dq, tolerance, "query cotangent");
  tensors.dk.expectNear(expected.dk, tolerance, "key cotangent");
  tensors.dv.expectNear(expected.dv, pairs ? 5e-3 : 1e-5, "value cotangent");
  if (s.form.sinks)
    tensors.dsinks.expectNear(expected.dsinks, tolerance, "sinks cotangent");

  forward->runInPieces(1, pointersOf(again.forward()));
  backward->runInPieces(1, pointersOf(again.backward()));
  for (size_t i = 0; i < tensors.results().size(); ++i)
    EXPECT_EQ(tensors.results()[i]->raw(), again.results()[i]->raw()) << i;
}

std::string
nameOf(const testing::TestParamInfo<AttentionKernels::ParamType> &info) {
  std::string name = std::get<0>(info.param).name() + "_" +
                     std::get<1>(info.param) + "_" + std::get<2>(info.param);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(
    All, AttentionKernels,
    testing::Combine(
        testing::Values(Shape{1, 1, 1, 1, 1}, Shape{2, 5, 4, 2, 3},
                        Shape{1, 33, 2, 1, 8}, Shape{2, 64, 2, 2, 64},
                        Shape{1, 70, 6, 2, 20}, Shape{1, 130, 2, 2, 96},
                        Shape{1, 97, 1, 1, 128}),
        testing::Values("f32", "bf16"), testing::ValuesIn(processors())),
    nameOf);

INSTANTIATE_TEST_SUITE_P(Forms, AttentionKernels,
                         testing::Combine(testing::ValuesIn(attentionForms(20,
                                                                           13)),
                                          testing::Values("f32", "bf16"),
                                          testing::ValuesIn(processors())),
                         nameOf);

/// Sizes of a head, of values and of the sequence that are odd, beyond a vector
/// of pairs or below one.
INSTANTIATE_TEST_SUITE_P(
    Pairs, AttentionKernels,
    testing::Combine(
        testing::Values(
            Shape{1, 1, 1, 1, 1}, Shape{2, 5, 4, 2, 3}, Shape{1, 64, 1, 1, 64},
            Shape{1, 131, 2, 1, 37, {.window = 40, .sinks = true}},
            Shape{2, 37, 2, 2, 9, {.bidirectional = true, .valueSize = 34}},
            Shape{1,
                  70,
                  4,
                  1,
                  20,
                  {.window = 9,
                   .softCap = 0.8,
                   .bidirectional = true,
                   .sinks = true,
                   .valueSize = 13}},
            Shape{2, 75, 2, 1, 66, {.softCap = 0.8, .documents = 9}}),
        testing::Values("pairs", "tiles", "vectors", "amx"),
        testing::Values("native")),
    nameOf);

INSTANTIATE_TEST_SUITE_P(
    TileForms, AttentionKernels,
    testing::Combine(testing::ValuesIn(attentionForms(20, 13)),
                     testing::Values("tiles"), testing::Values("native")),
    nameOf);

/// A sequence of numbers that are none leaves nothing in the blocks of the
/// next, whose last block has fewer keys and queries.
TEST(AttentionKernels, TilesForgetOtherSequences) {
  Shape s{2, 37, 1, 1, 20, {.valueSize = 13}};
  Products products("tiles");
  auto forward = products.compile(forwardSource(s, "bf16"));
  auto backward = products.compile(backwardSource(s, "bf16"));
  ASSERT_TRUE(forward && backward);
  AttentionTensors t(s, "bf16");
  for (Buffer *buffer : {&t.q, &t.k, &t.v})
    for (int64_t i = 0; i < int64_t(buffer->numbers().size()) / 2; ++i)
      buffer->set(i, std::nan(""));
  forward->runInPieces(4, pointersOf(t.forward()));
  backward->runInPieces(2, pointersOf(t.backward()));
  for (Buffer *buffer : {&t.out, &t.lse, &t.dq, &t.dk, &t.dv}) {
    std::vector<double> numbers = buffer->numbers();
    EXPECT_TRUE(std::isnan(numbers[0]));
    for (size_t i = numbers.size() / 2; i < numbers.size(); ++i)
      ASSERT_TRUE(std::isfinite(numbers[i])) << i;
  }
}

/// The root of the mean square of the error, relative to that of `expected`.
double errorOf(const Buffer &actual, const std::vector<double> &expected) {
  double error = 0, all = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    error += std::pow(actual[i] - expected[i], 2);
    all += std::pow(expected[i], 2);
  }
  return std::sqrt(error / all);
}

/// The bounds are a tenth above the errors of PyTorch 2.15's attention in bf16
/// for numbers of this distribution.
class AttentionAccuracy : public testing::TestWithParam<const char *> {};

TEST_P(AttentionAccuracy, IsThatOfPyTorch) {
  Shape s{1, 256, 2, 2, 64};
  Products products(GetParam());
  if (!products.isAvailable())
    GTEST_SKIP() << "this processor, or system, lacks it";
  auto forward = products.compile(forwardSource(s, "bf16"));
  auto backward = products.compile(backwardSource(s, "bf16"));
  ASSERT_TRUE(forward && backward);
  AttentionTensors tensors(s, "bf16");
  forward->run(nullptr, pointersOf(tensors.forward()));
  backward->run(nullptr, pointersOf(tensors.backward()));
  AttentionReference expected(s, tensors);
  EXPECT_LT(errorOf(tensors.out, expected.out), 2.2e-3);
  EXPECT_LT(errorOf(tensors.dq, expected.dq), 2.8e-3);
  EXPECT_LT(errorOf(tensors.dk, expected.dk), 3.9e-3);
  EXPECT_LT(errorOf(tensors.dv, expected.dv), 3.8e-3);
}

INSTANTIATE_TEST_SUITE_P(All, AttentionAccuracy,
                         testing::Values("pairs", "tiles", "vectors", "amx"),
                         [](const auto &info) {
                           return std::string(info.param);
                         });

/// Scores of some thousands, with a window too: the first block of keys that a
/// block of queries walks over has rows that see none of it.
TEST(AttentionKernels, LargeScoresDoNotOverflow) {
  for (int64_t window : {0, 3}) {
    Shape s{1, 70, 1, 1, 4, {.window = window}};
    auto forward = compileOp(forwardSource(s, "f32"));
    ASSERT_TRUE(forward);
    AttentionTensors t(s, "f32");
    t.q = Buffer::random("f32", s.queries(), 1, 90.0f, 100.0f);
    t.k = Buffer::random("f32", s.keys(), 2, -100.0f, 100.0f);
    forward->run(nullptr, pointersOf(t.forward()));
    for (int64_t i = 0; i < s.outputs(); ++i)
      ASSERT_LE(std::abs(t.out[i]), 1.0) << i;
    for (int64_t i = 0; i < s.lines(); ++i)
      ASSERT_TRUE(std::isfinite(t.lse[i])) << i;
  }
}

/// Not a number beyond the window does not reach a query: what is not visible
/// is not read, or its weight is none.
TEST(AttentionKernels, SkipBlocksOutsideTheWindow) {
  Shape s{1, 200, 1, 1, 16, {.window = 10}};
  auto forward = compileOp(forwardSource(s, "f32"));
  ASSERT_TRUE(forward);
  AttentionTensors t(s, "f32");
  for (int64_t i = 0; i < 100 * s.size; ++i) {
    t.k.set(i, std::nan(""));
    t.v.set(i, std::nan(""));
  }
  forward->run(nullptr, pointersOf(t.forward()));
  for (int64_t row = 150; row < s.sequence; ++row)
    for (int64_t d = 0; d < s.size; ++d)
      ASSERT_TRUE(std::isfinite(t.out[s.outputAt(0, row, 0, d)])) << row;
}

/// The same of keys of other documents.
TEST(AttentionKernels, SkipBlocksOfOtherDocuments) {
  Shape s{1, 200, 1, 1, 16, {.documents = 100}};
  auto forward = compileOp(forwardSource(s, "f32"));
  ASSERT_TRUE(forward);
  AttentionTensors t(s, "f32");
  for (int64_t i = 0; i < 64 * s.size; ++i)
    t.v.set(i, std::nan(""));
  forward->run(nullptr, pointersOf(t.forward()));
  // Blocks of 32 queries, or fewer, and of keys: those from 128 on have nothing
  // of the first 64 keys in a block.
  for (int64_t row = 128; row < s.sequence; ++row)
    for (int64_t d = 0; d < s.size; ++d)
      ASSERT_TRUE(std::isfinite(t.out[s.outputAt(0, row, 0, d)])) << row;
}

TEST(AttentionKernels, RefuseAHeadThatDoesNotFitTheStack) {
  EXPECT_TRUE(compileOp(forwardSource({1, 1, 1, 1, 2048}, "f32")));
  EXPECT_FALSE(compileOp(forwardSource({1, 1, 1, 1, 2049}, "f32")));
  EXPECT_FALSE(compileOp(backwardSource({1, 1, 1, 1, 2049}, "f32")));
  EXPECT_FALSE(
      compileOp(forwardSource({1, 1, 1, 1, 8, {.valueSize = 2049}}, "f32")));
}

} // namespace
