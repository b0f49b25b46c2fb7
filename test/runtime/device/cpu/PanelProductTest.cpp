// SPDX-License-Identifier: Apache-2.0
//
// Products of panels by kernels of small vectors and of tiles in plain C++,
// which any processor can run, by those for AVX-512, by those for AMX, whose
// instructions are emulated on a processor without it, and by those that
// multiply in f32.
#include "runtime/device/cpu/PanelProduct.h"
#include "runtime/device/GemmShape.h"
#include "runtime/device/cpu/TileProduct.h"
#include "test/runtime/GemmCase.h"
#include "test/runtime/device/cpu/EmulatedTiles.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <gtest/gtest.h>
#include <optional>
#include <random>
#include <string>
#include <type_traits>
#include <utility>

namespace rota::plain {

constexpr int kElements = 2, kElementBytes = 2;
constexpr int kLanes = 8, kWords = 1, kRows = 4, kVectors = 2;
constexpr PanelSizes kSizes = {.elements = kElements,
                               .elementBytes = kElementBytes,
                               .lanes = kLanes,
                               .words = kWords,
                               .rows = kRows,
                               .vectors = kVectors,
                               .rowsInPlace = 1,
                               .mostWords = 512,
                               .packedBytes = 800 << 10,
                               .packedBytesWithRows = 3200 << 10};
typedef float Floats __attribute__((ext_vector_type(kLanes)));
typedef uint32_t Words __attribute__((ext_vector_type(kLanes)));

static inline Floats addProducts(Floats sums, Words a, Words b) {
  auto first = [](Words pairs) {
    return __builtin_bit_cast(Floats, pairs << 16);
  };
  auto second = [](Words pairs) {
    return __builtin_bit_cast(Floats, pairs & 0xffff0000u);
  };
  return sums + second(a) * second(b) + first(a) * first(b);
}

#include "runtime/device/cpu/PanelMemory.inc"
#include "runtime/device/cpu/PanelVectors.inc"

} // namespace rota::plain

using namespace rota;
using namespace rota::test;

namespace {

/// The whole product by tiles of this size.
Buffer multiply(const RotaGemm &g, const PanelKernels &kernels,
                const Operands &in, int64_t tileM, int64_t tileN) {
  Buffer c = in.c;
  Scratch scratch;
  int64_t bytesA = elementBytes(g.typeA), bytesC = elementBytes(g.typeC);
  for (int64_t row = 0; row < g.m; row += tileM)
    for (int64_t column = 0; column < g.n; column += tileN) {
      RotaGemm tile = g;
      tile.m = std::min(tileM, g.m - row);
      tile.n = std::min(tileN, g.n - column);
      int64_t fromA = row * (g.transposeA ? 1 : g.lda);
      int64_t fromB = column * (g.transposeB ? g.ldb : 1);
      PanelProduct(tile, kernels)
          .run(in.a.bytes.data() + bytesA * fromA,
               in.b.bytes.data() + bytesA * fromB,
               c.bytes.data() + bytesC * (row * g.ldc + column), scratch);
    }
  return c;
}

enum class Kind {
  PlainVectors,
  Avx512,
  PlainTiles,
  Amx,
  Floats512,
  Floats256,
  Floats128,
  Widened512,
  Widened256,
  Widened128
};

class PanelKernelsTest : public testing::TestWithParam<Kind> {
protected:
  void SetUp() override {
    switch (GetParam()) {
    case Kind::PlainVectors:
      kernels = &plain::kKernels;
      break;
    case Kind::Avx512:
      kernels = panelKernelsOfAvx512();
      if (!kernels)
        GTEST_SKIP() << "this processor has no AVX-512 BF16";
      break;
    case Kind::PlainTiles:
      kernels = &panelKernelsOfTiles();
      break;
    case Kind::Amx:
      setUpAmx();
      break;
    case Kind::Floats512:
    case Kind::Floats256:
    case Kind::Floats128:
      type = ROTA_F32;
      setUpFloats(512 >> (int(GetParam()) - int(Kind::Floats512)));
      break;
    case Kind::Widened512:
    case Kind::Widened256:
    case Kind::Widened128:
      setUpFloats(512 >> (int(GetParam()) - int(Kind::Widened512)));
    }
  }

  void TearDown() override {
    EXPECT_FALSE(TileRegisters::get().isConfigured());
  }

  void setUpAmx() {
    bool hasVectors = __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512vl");
    if (!hasVectors || (hasAmx() && !mayUseAmx()))
      GTEST_SKIP() << "this processor has no AVX-512, or the system gives no "
                      "tiles";
    if (!hasAmx())
      emulator.emplace();
    kernels = &panelKernelsOfAmx();
  }

  void setUpFloats(int vectorBits) {
    kernels = floatKernels(type, vectorBits);
    if (!kernels)
      GTEST_SKIP() << "this processor has no vectors of " << vectorBits
                   << " bits";
  }

  /// describeGemm with operands of the kernels' type.
  RotaGemm describe(int64_t m, int64_t n, int64_t k, bool transposeA,
                    bool transposeB, int32_t typeC, bool accumulate,
                    int64_t gap) const {
    return describeGemm(1, m, n, k, transposeA, transposeB, type, type, typeC,
                        accumulate, gap);
  }

  void check(const RotaGemm &g, int64_t tileM, int64_t tileN) {
    SCOPED_TRACE(testing::Message()
                 << g.m << " x " << g.n << " x " << g.k << ", transposed "
                 << g.transposeA << g.transposeB << ", type of C " << g.typeC);
    Operands in(g);
    Buffer c = multiply(g, *kernels, in, g.m, g.n);
    expectProduct(g, in, c);
    EXPECT_EQ(multiply(g, *kernels, in, tileM, tileN).bytes, c.bytes)
        << "in tiles of " << tileM << " x " << tileN;
  }

  int32_t type = ROTA_BF16;
  const PanelKernels *kernels = nullptr;
  std::optional<EmulatedAmx> emulator;
};

/// Whole and partial panels and vectors, odd k, rows with gaps; the bits of an
/// element do not depend on the tiles.
TEST_P(PanelKernelsTest, AgreesWithPlainLoop) {
  std::mt19937 random(1);
  auto upTo = [&](int64_t most) { return 1 + int64_t(random() % most); };
  for (int form = 0; form < 64; ++form) {
    int64_t m = upTo(form % 4 ? 40 : 150), n = upTo(form % 8 ? 150 : 600);
    RotaGemm g = describe(m, n, upTo(130), form & 1, form & 2,
                          form & 4 ? ROTA_F32 : ROTA_BF16, form & 8,
                          /*gap=*/form & 16 ? 3 : 0);
    check(g, upTo(m), upTo(n));
  }
}

/// Sums of several parts of k are rounded once.
TEST_P(PanelKernelsTest, AddsPartsOfK) {
  for (int form = 0; form < 16; ++form)
    check(describe(70, 90, 2305, form & 1, form & 2,
                   form & 4 ? ROTA_F32 : ROTA_BF16, form & 8,
                   /*gap=*/0),
          30, 50);
}

TEST_P(PanelKernelsTest, KeepsWhatIsNoNumber) {
  for (int typeC : {ROTA_BF16, ROTA_F32}) {
    RotaGemm g = describe(5, 20, 7, false, true, typeC, false, 0);
    Operands in(g);
    in.a.set(0, NAN);
    in.a.set(g.lda + 6, INFINITY);
    Buffer c = multiply(g, *kernels, in, g.m, g.n);
    for (int64_t column = 0; column < g.n; ++column) {
      EXPECT_TRUE(std::isnan(c.get(column)));
      EXPECT_TRUE(std::isinf(c.get(g.ldc + column)));
      EXPECT_TRUE(std::isfinite(c.get(2 * g.ldc + column)));
    }
  }
}

/// Rows that are read where they lie, a packed rest of them, rows that would
/// share places in a cache, several groups of columns.
TEST_P(PanelKernelsTest, ReadsRowsInPlace) {
  for (int gap : {0, 5, 1024 - 96})
    check(describe(83, 70, 96, false, gap != 5, ROTA_F32, gap == 0, gap), 50,
          40);
  check(describe(20, 1700, 640, false, true, ROTA_BF16, true, 0), 16, 900);
}

/// Stretches of rows give the bits of copies that lie together; other rows of C
/// keep theirs.
TEST_P(PanelKernelsTest, TakesStretchesOfRows) {
  const std::vector<RowStretch> stretches = {
      {2, 41}, {50, 1}, {51, 16}, {90, 7}};
  for (int form = 0; form < 16; ++form) {
    RotaGemm g = describe(100, 70, form & 1 ? 1300 : 65, false, form & 2,
                          form & 4 ? ROTA_F32 : ROTA_BF16, form & 8, 3);
    SCOPED_TRACE(testing::Message() << "form " << form);
    Operands in(g);
    Buffer all = multiply(g, *kernels, in, g.m, g.n), c = in.c, expected = in.c;
    g.m = 65;
    Scratch scratch;
    PanelProduct(g, *kernels)
        .run(in.a.bytes.data(), in.b.bytes.data(), c.bytes.data(), stretches,
             scratch);
    int64_t stride = g.ldc * elementBytes(g.typeC);
    for (const RowStretch &rows : stretches)
      std::copy_n(all.bytes.begin() + rows.first * stride, rows.count * stride,
                  expected.bytes.begin() + rows.first * stride);
    EXPECT_EQ(c.bytes, expected.bytes);
  }
}

/// Sums over stretches of rows are those of copies, where a stretch ends with
/// zeros if it is no whole words.
TEST_P(PanelKernelsTest, SumsOverStretchesOfRows) {
  const std::vector<RowStretch> few = {{2, 41}, {50, 1}, {51, 16}, {90, 7}},
                                many = {{0, 700}, {701, 999}, {1750, 333}};
  constexpr int64_t kScratch = 1 << 24;
  Scratch scratch;
  std::memset(scratch.get(kScratch), 0xff, kScratch); // no numbers
  for (int form = 0; form < 16; ++form) {
    const std::vector<RowStretch> &stretches = form & 1 ? many : few;
    int64_t k = PanelProduct::depthOf(stretches, *kernels);
    RotaGemm g = describe(70, 60, form & 1 ? 2100 : 100, true, form & 2,
                          form & 4 ? ROTA_F32 : ROTA_BF16, form & 8, 3);
    SCOPED_TRACE(testing::Message() << "form " << form);
    Operands in(g);
    RotaGemm together =
        describe(g.m, g.n, k, true, form & 2, g.typeC, form & 8, 3);
    Operands copies(together);
    copies.c = in.c;
    int64_t to = 0;
    auto stepB = [](const RotaGemm &of) { return of.transposeB ? 1 : of.ldb; };
    auto columnB = [](const RotaGemm &of) {
      return of.transposeB ? of.ldb : 1;
    };
    auto copyRow = [&](int64_t from) {
      for (int64_t i = 0; i < g.m; ++i)
        copies.a.set(to * together.lda + i,
                     from < 0 ? 0 : in.a.get(from * g.lda + i));
      for (int64_t j = 0; j < g.n; ++j)
        copies.b.set(to * stepB(together) + j * columnB(together),
                     from < 0 ? 0 : in.b.get(from * stepB(g) + j * columnB(g)));
      ++to;
    };
    for (const RowStretch &rows : stretches) {
      for (int64_t row = 0; row < rows.count; ++row)
        copyRow(rows.first + row);
      if (rows.count % kernels->sizes.elements)
        copyRow(-1);
    }
    g.k = k;
    Buffer c = in.c;
    PanelProduct(g, *kernels)
        .run(in.a.bytes.data(), in.b.bytes.data(), c.bytes.data(), stretches,
             scratch);
    EXPECT_EQ(c.bytes, multiply(together, *kernels, copies, g.m, g.n).bytes);
  }
}

/// The check before kernels for AMX are chosen; it fails without products.
TEST_P(PanelKernelsTest, AgreesBeforeItIsChosen) {
  if (type != ROTA_BF16)
    GTEST_SKIP() << "products of bf16 alone are checked";
  EXPECT_TRUE(agreeWithPlainLoop(*kernels));
  PanelKernels wrong = *kernels;
  wrong.multiply = [](const PanelBlock &, int64_t, int64_t,
                      const PanelResult &) {};
  EXPECT_FALSE(agreeWithPlainLoop(wrong));
}

std::string kindName(const testing::TestParamInfo<Kind> &info) {
  constexpr const char *kNames[] = {
      "PlainVectors", "Avx512",    "PlainTiles", "Amx",        "Floats512",
      "Floats256",    "Floats128", "Widened512", "Widened256", "Widened128"};
  return kNames[int(info.param)];
}

INSTANTIATE_TEST_SUITE_P(All, PanelKernelsTest,
                         testing::Values(Kind::PlainVectors, Kind::Avx512,
                                         Kind::PlainTiles, Kind::Amx,
                                         Kind::Floats512, Kind::Floats256,
                                         Kind::Floats128, Kind::Widened512,
                                         Kind::Widened256, Kind::Widened128),
                         kindName);

TEST(PanelChoiceTest, AmxThenAvx512) {
  if (!hasAmx())
    EXPECT_EQ(panelKernels(), panelKernelsOfAvx512());
  else
    EXPECT_EQ(panelKernels(), mayUseAmx() ? &panelKernelsOfAmx() : nullptr);
}

TEST(PanelChoiceTest, TilesHaveAmxWhereProductsDo) {
  bool usesAmx = panelKernels() == &panelKernelsOfAmx();
  EXPECT_EQ(rotaTiles() == &kTilesOf<panelKernelsOfAmx>, usesAmx);
  EXPECT_EQ(rotaTiles() == &kTilesOf<tileKernelsOfAvx512>, !usesAmx);
}

} // namespace
