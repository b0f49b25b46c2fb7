// SPDX-License-Identifier: Apache-2.0
//
// Kernels of experts on the emulated GPU, against those of the CPU or sums in
// f64.
#include "test/lowering/gpu/AgainstCpu.h"

using namespace ::rota::test;

namespace {

//===----------------------------------------------------------------------===//
// Experts
//===----------------------------------------------------------------------===//

TEST_F(AgainstCpu, Route) {
  const char *const route = R"(
    func.func @f(%l: tensor<2x5x$Xxf32>$BIAS) {
      %w, %e = rota.route %l $FORM scaling = 1.5 : (tensor<2x5x$Xxf32>$TYPE) -> (tensor<2x5x$Kxf32>, tensor<2x5x$Kxi32>)
      return
    })";
  const char *const grad = R"(
    func.func @f(%d: tensor<2x5x$Kxf32>, %l: tensor<2x5x$Xxf32>, %e: tensor<2x5x$Kxi32>) {
      %g = rota.route_grad %d, %l, %e $FORM scaling = 1.5 : (tensor<2x5x$Kxf32>, tensor<2x5x$Xxf32>, tensor<2x5x$Kxi32>) -> tensor<2x5x$Xxf32>
      return
    })";
  for (auto [x, k] : {std::pair(4, 2), {6, 6}, {64, 8}, {200, 4}})
    for (std::string form : {"", "normalize", "sigmoid", "sigmoid normalize"}) {
      Names names = {{"$X", number(x)},
                     {"$K", number(k)},
                     {"$FORM", form},
                     {"$BIAS", ""},
                     {"$TYPE", ""}};
      check({replaced(route, names), {}, 4});
      // The choices of a token are distinct in a run, here they need not be.
      check({replaced(grad, names), {}, 2, 0, x});
    }
  for (std::string form : {"groups = 4 top_groups = 2",
                           "sigmoid normalize groups = 4 top_groups = 2"})
    check({replaced(route, {{"$X", "64"},
                            {"$K", "8"},
                            {"$FORM", "bias %b " + form},
                            {"$BIAS", ", %b: tensor<64xf32>"},
                            {"$TYPE", ", tensor<64xf32>"}}),
           {},
           2,
           0,
           1,
           {},
           1e-5,
           /*leaveOutBarriers=*/false});
}

TEST_F(AgainstCpu, ExpertPlaces) {
  const char *const places = R"(
    func.func @f(%e: tensor<2x$Sx$Kxi32>) {
      %p, %c = rota.expert_places %e rows = 64 $FORM : tensor<2x$Sx$Kxi32> -> tensor<$Qx8xi32>
      return
    })";
  // Experts that do not exist, and blocks that are full.
  for (auto [s, k] : {std::pair(16, 2), {30, 3}, {200, 2}}) {
    for (std::string form : {"blocks = 1", "blocks = 4", "capacity = 5",
                             "blocks = 2 capacity = 3"})
      check({replaced(places, {{"$S", number(s)},
                               {"$K", number(k)},
                               {"$Q", "2"},
                               {"$FORM", form}}),
             {},
             2,
             -1,
             9,
             {},
             /*tolerance=*/0});
    check({replaced(places, {{"$S", number(s)},
                             {"$K", number(k)},
                             {"$Q", "4"},
                             {"$FORM", "capacity = 4 parts = 2"}}),
           {},
           2,
           0,
           8,
           {},
           /*tolerance=*/0});
  }
  // More experts than a block has threads, and parts of choices of each warp.
  check({R"(
    func.func @f(%e: tensor<1x700x3xi32>) {
      %p, %c = rota.expert_places %e rows = 2100 blocks = 3 : tensor<1x700x3xi32> -> tensor<1x1200xi32>
      return
    })",
         {},
         2,
         0,
         1200,
         {},
         /*tolerance=*/0});
  check({R"(
    func.func @f(%e: tensor<2x16x2xi32>, %all: tensor<80x8xi32>, %first: tensor<i32>) {
      %p, %c = rota.expert_places %e others %all offset %first rows = 32 capacity = 40 : tensor<2x16x2xi32>, tensor<80x8xi32>, tensor<i32> -> tensor<2x8xi32>
      return
    })",
         {},
         2,
         0,
         8,
         {},
         /*tolerance=*/0});
}

TEST_F(AgainstCpu, MovedRows) {
  const char *const dispatch = R"(
    func.func @f(%x: tensor<2x16x$Cx$T>, %p: tensor<2x16x2xi32>$WEIGHT) {
      %y = rota.dispatch %x, %p $FORM : (tensor<2x16x$Cx$T>, tensor<2x16x2xi32>$TYPE) -> tensor<$Qx40x$Cx$T>
      return
    })";
  const char *const combine = R"(
    func.func @f(%r: tensor<$Qx40x$Cx$T>, %p: tensor<2x16x2xi32>$WEIGHT) {
      %y = rota.combine %r, %p $FORM : (tensor<$Qx40x$Cx$T>, tensor<2x16x2xi32>$TYPE) -> tensor<2x16x$Cx$T>
      return
    })";
  const char *const dot = R"(
    func.func @f(%x: tensor<2x16x$Cx$T>, %r: tensor<$Qx40x$Cx$T>, %p: tensor<2x16x2xi32>) {
      %y = rota.choice_dot %x, %r, %p $FORM : (tensor<2x16x$Cx$T>, tensor<$Qx40x$Cx$T>, tensor<2x16x2xi32>) -> tensor<2x16x2xf32>
      return
    })";
  auto checkAll = [&](const char *text, std::string type, int64_t columns,
                      std::string parts, bool weighed) {
    Names names = {{"$WEIGHT", weighed ? ", %w: tensor<2x16x2xf32>" : ""},
                   {"$TYPE", weighed ? ", tensor<2x16x2xf32>" : ""},
                   {"$FORM", (weighed ? "weights %w " : "") + parts},
                   {"$C", number(columns)},
                   {"$T", type},
                   {"$Q", parts.empty() ? "2" : "4"}};
    // Some places are no row.
    check({replaced(text, names),
           {},
           2,
           -4,
           60,
           {},
           1e-5,
           /*leaveOutBarriers=*/false,
           /*distinct=*/true});
  };
  for (std::string type : {"bf16", "f32"})
    for (int64_t columns : {1, 6, 64, 1000})
      for (std::string parts : {"", "parts = 2"}) {
        for (bool weighed : {false, true}) {
          checkAll(dispatch, type, columns, parts, weighed);
          checkAll(combine, type, columns, parts, weighed);
        }
        checkAll(dot, type, columns, parts, false);
      }
}

/// Rows that several blocks clear where no choice has them.
TEST_F(AgainstCpu, ClearedRows) {
  for (std::string element : {"2xf32", "40xbf16"})
    check({replaced(R"(
      func.func @f(%x: tensor<2x150x$E>, %p: tensor<2x150x3xi32>) {
        %y = rota.dispatch %x, %p : (tensor<2x150x$E>, tensor<2x150x3xi32>) -> tensor<2x600x$E>
        return
      })",
                    {{"$E", element}}),
           {},
           2,
           -4,
           60,
           {},
           1e-5,
           /*leaveOutBarriers=*/true,
           /*distinct=*/true});
}

TEST_F(AgainstCpu, GroupedBias) {
  const char *const bias = R"(
    func.func @f(%r: tensor<2x32x$Cx$T>, %b: tensor<8x$Cxf32>, %c: tensor<2x8xi32>) {
      %y = rota.grouped_bias %r, %b, %c blocks = 2 : tensor<2x32x$Cx$T>, tensor<8x$Cxf32>, tensor<2x8xi32>
      return
    })";
  const char *const grad = R"(
    func.func @f(%d: tensor<2x32x$Cx$T>, %c: tensor<2x8xi32>) {
      %y = rota.grouped_bias_grad %d, %c blocks = 2 : (tensor<2x32x$Cx$T>, tensor<2x8xi32>) -> tensor<8x$Cxf32>
      return
    })";
  for (std::string type : {"bf16", "f32"})
    for (int64_t columns : {1, 6, 64, 1000}) {
      Names names = {{"$C", number(columns)}, {"$T", type}};
      // Counts for which blocks have room, and others.
      for (int64_t most : {5, 9}) {
        check({replaced(bias, names), {}, 2, 0, most, {{0, 0}}});
        for (bool adds : {false, true})
          check({replaced(grad, names), {adds}, 2, 0, most});
      }
    }
}

/// Products of rows of experts, which are calls of the runtime on a CPU,
/// against sums in f64.
class Grouped : public testing::Test {
protected:
  struct Shape {
    int64_t batch, rows, in, out, experts, blocks;
    std::string type;
    bool transposed, adds;
  };

  void check(const Shape &shape, bool isGradient, int64_t most = 0) {
    s = shape;
    SCOPED_TRACE(text(isGradient));
    auto gpu = EmulatedOp::create(text(isGradient), {s.adds});
    ASSERT_TRUE(gpu);
    operands = gpu->makeOperands();
    std::mt19937 engine(7);
    std::uniform_real_distribution<double> real(-1, 1);
    most = most ? most : s.rows / s.experts;
    std::uniform_int_distribution<int64_t> count(0, most);
    auto results = gpu->makeResults();
    for (TensorBytes &bytes : operands)
      for (int64_t i = 0; i < bytes.count; ++i)
        bytes.set(i,
                  bytes.type == "i32" ? double(count(engine)) : real(engine));
    for (int64_t i = 0; s.adds && i < results[0].count; ++i)
      results[0].set(i, real(engine));
    auto initial = results;
    std::vector<double> expected(results[0].count, 0.0);
    for (int64_t i = 0; s.adds && i < results[0].count; ++i)
      expected[i] = results[0][i];
    forEachRow([&](int64_t expert, int64_t row) {
      isGradient ? addOuter(expert, row, expected)
                 : addRow(expert, row, expected);
    });
    auto run = [&](std::optional<uint64_t> seed) {
      auto made = initial;
      std::vector<char *> pointers;
      for (TensorBytes &bytes : operands)
        pointers.push_back(bytes.data());
      pointers.push_back(made[0].data());
      for (const std::string &report : gpu->run(pointers, seed))
        ADD_FAILURE() << report;
      return made[0];
    };
    TensorBytes got = run(std::nullopt), again = run(3);
    EXPECT_EQ(std::memcmp(got.data(), again.data(), got.bytes()), 0);
    if (onMatrices()) {
      gpu = EmulatedOp::create(text(isGradient), {s.adds}, kWarpgroupChip);
      ASSERT_TRUE(gpu);
      again = run(5);
      EXPECT_EQ(std::memcmp(got.data(), again.data(), got.bytes()), 0);
    }
    double rounding = got.type == "bf16" ? 0x1p-7 : 1e-5;
    for (int64_t i = 0; i < got.count; ++i)
      ASSERT_NEAR(got[i], expected[i],
                  rounding * std::max(1.0, std::abs(expected[i])))
          << "at " << i;
  }

  /// The runs of all experts, in a block of a sequence and no further.
  template <typename Body> void forEachRow(Body body) {
    const TensorBytes &counts = operands[2];
    int64_t rows = s.rows / s.blocks, experts = s.experts / s.blocks;
    for (int64_t b = 0; b < s.batch; ++b)
      for (int64_t x = 0, row = 0; x < s.experts; ++x) {
        if (x % experts == 0)
          row = x / experts * rows;
        int64_t end = (x / experts + 1) * rows;
        for (int64_t i = 0; i < int64_t(counts[b * s.experts + x]); ++i, ++row)
          if (row < end)
            body(x, b * s.rows + row);
      }
  }

  static constexpr const char *kWarpgroupChip = "sm_90a";
  bool onMatrices() const {
    return s.type == "bf16" && s.in % 8 == 0 && s.out % 8 == 0;
  }

  std::string text(bool isGradient) const {
    Names names = {{"$B", number(s.batch)},
                   {"$R", number(s.rows)},
                   {"$I", number(s.in)},
                   {"$O", number(s.out)},
                   {"$X", number(s.experts)},
                   {"$P", number(s.blocks)},
                   {"$T", s.type},
                   {"$WAY", s.transposed ? "transposed" : ""},
                   {"$W", s.transposed ? number(s.out) + "x" + number(s.in)
                                       : number(s.in) + "x" + number(s.out)}};
    return replaced(isGradient ? R"(
      func.func @f(%l: tensor<$Bx$Rx$Ix$T>, %r: tensor<$Bx$Rx$Ox$T>, %c: tensor<$Bx$Xxi32>) {
        %y = rota.grouped_product_grad %l, %r, %c blocks = $P : (tensor<$Bx$Rx$Ix$T>, tensor<$Bx$Rx$Ox$T>, tensor<$Bx$Xxi32>) -> tensor<$Xx$Ix$Oxf32>
        return
      })"
                               : R"(
      func.func @f(%r: tensor<$Bx$Rx$Ix$T>, %w: tensor<$Xx$Wx$T>, %c: tensor<$Bx$Xxi32>) {
        %y = rota.grouped_product %r, %w, %c $WAY blocks = $P : (tensor<$Bx$Rx$Ix$T>, tensor<$Xx$Wx$T>, tensor<$Bx$Xxi32>) -> tensor<$Bx$Rx$Ox$T>
        return
      })",
                    names);
  }

  Shape s;
  std::vector<TensorBytes> operands;

private:
  void addRow(int64_t expert, int64_t row, std::vector<double> &result) const {
    for (int64_t n = 0; n < s.out; ++n)
      for (int64_t k = 0; k < s.in; ++k) {
        int64_t at = s.transposed ? n * s.in + k : k * s.out + n;
        result[row * s.out + n] += operands[0][row * s.in + k] *
                                   operands[1][expert * s.in * s.out + at];
      }
  }
  void addOuter(int64_t expert, int64_t row, std::vector<double> &sum) const {
    for (int64_t m = 0; m < s.in; ++m)
      for (int64_t n = 0; n < s.out; ++n)
        sum[(expert * s.in + m) * s.out + n] +=
            operands[0][row * s.in + m] * operands[1][row * s.out + n];
  }
};

TEST_F(Grouped, Products) {
  for (std::string type : {"bf16", "f32"})
    for (bool transposed : {false, true})
      for (auto [rows, in, out] :
           {std::tuple(32, 4, 6), {160, 40, 72}, {96, 64, 128}, {64, 33, 7}})
        for (bool adds : {false, true}) {
          check({2, rows, in, out, 8, 2, type, transposed, adds}, false);
          if (!transposed)
            check({2, rows, in, out, 8, 2, type, false, adds}, true);
        }
}

/// Tiles of 128 x 128 that end within rows, columns and depth, and experts that
/// end within tiles of rows, or within a warp's rows.
TEST_F(Grouped, MatrixTiles) {
  check({2, 512, 136, 240, 2, 1, "bf16", false, false}, false);
  check({1, 320, 264, 136, 16, 2, "bf16", true, true}, false);
  check({2, 512, 136, 200, 2, 1, "bf16", false, true}, true);
  check({2, 256, 72, 256, 2, 1, "bf16", false, true}, true);
}

/// A tile has an expert's rows of several sequences, and an expert has several
/// tiles.
TEST_F(Grouped, TilesAcrossSequences) {
  for (std::string type : {"bf16", "f32"})
    for (int64_t batch : {3, 9})
      check({batch, 128, 40, 72, 4, 2, type, false, false}, false);
}

/// An expert has more rows than a block keeps numbers of.
TEST_F(Grouped, GradientOfManyRows) {
  check({2, 2200, 8, 16, 2, 1, "bf16", false, true}, true, /*most=*/1100);
  check({3, 1500, 5, 6, 1, 1, "f32", false, false}, true);
}

/// Several counts for each thread that makes the tables, and tables that do not
/// fit in shared memory.
TEST_F(Grouped, ManyCounts) {
  check({9, 320, 4, 6, 160, 2, "f32", false, false}, true, /*most=*/3);
  check({70, 300, 4, 6, 150, 2, "f32", false, false}, false, /*most=*/3);
}

TEST_F(Grouped, NeedEachSynchronization) {
  using Kind = ::rota::lowering::GpuSynchronization;
  for (auto [type, chip, out] : {std::tuple("f32", "sm_80", 64),
                                 {"bf16", "sm_80", 64},
                                 {"bf16", kWarpgroupChip, 64},
                                 {"bf16", kWarpgroupChip, 256}})
    for (bool isGradient : {false, true}) {
      // Experts have rows of two sequences; on matrix instructions more slices
      // than stages.
      bool hasStages = type == std::string("bf16");
      int64_t rows = isGradient && hasStages ? 300 : 30;
      int64_t in = isGradient || !hasStages ? 72 : 600;
      s = {2, 2 * rows + 40, in, out, 2, 1, type, false, false};
      auto gpu = EmulatedOp::create(text(isGradient), {}, chip);
      ASSERT_TRUE(gpu);
      operands = gpu->makeOperands();
      auto results = gpu->makeResults();
      for (int64_t x = 0; x < operands[2].count; ++x)
        operands[2].set(x, double(rows));
      std::vector<char *> pointers;
      for (TensorBytes &bytes : operands)
        pointers.push_back(bytes.data());
      pointers.push_back(results[0].data());
      for (Kind kind : {Kind::Barrier, Kind::CopyWait, Kind::WarpBarrier,
                        Kind::WarpgroupWait})
        for (unsigned i = 0; i < gpu->count(kind); ++i) {
          gpu->leaveOut({kind, i});
          EXPECT_FALSE(gpu->run(pointers).empty())
              << type << " on " << chip << ": number " << i << " of kind "
              << int(kind) << " is not needed";
        }
    }
}

/// More rows than a block has give no finite result.
TEST_F(Grouped, OverfullBlocks) {
  s = {1, 32, 4, 6, 8, 2, "f32", false, false};
  auto gpu = EmulatedOp::create(text(false));
  ASSERT_TRUE(gpu);
  operands = gpu->makeOperands();
  auto results = gpu->makeResults();
  for (TensorBytes &bytes : operands)
    for (int64_t i = 0; i < bytes.count; ++i)
      bytes.set(i, 1);
  for (int64_t x = 0; x < 8; ++x)
    operands[2].set(x, x < 4 ? 4 : 5);
  std::vector<char *> pointers;
  for (TensorBytes &bytes : operands)
    pointers.push_back(bytes.data());
  pointers.push_back(results[0].data());
  EXPECT_TRUE(gpu->run(pointers).empty());
  for (int64_t i = 0; i < results[0].count; ++i)
    EXPECT_EQ(std::isfinite(results[0][i]), i < results[0].count / 2) << i;
}

} // namespace
