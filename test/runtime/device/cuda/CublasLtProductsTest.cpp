// SPDX-License-Identifier: Apache-2.0
//
// Products through a cuBLASLt on the host: each against a plain loop, and which
// algorithm they take.
#include "runtime/device/cuda/CublasLtProducts.h"
#include "runtime/Error.h"
#include "runtime/device/Device.h"
#include "runtime/device/GemmShape.h"
#include "runtime/program/RuntimeMemory.h"
#include "test/runtime/GemmCase.h"
#include "test/runtime/TemporaryFolder.h"
#include "test/runtime/device/cuda/FakeBlasLt.h"

#include <algorithm>
#include <cstring>
#include <gtest/gtest.h>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

using namespace rota;
using namespace rota::cuda;
using namespace rota::test;
using testing::internal::CaptureStderr;
using testing::internal::GetCapturedStderr;

namespace {

constexpr int64_t kWorkspaceBytes = 4096;
using Numbers = std::vector<uint64_t>;

/// The bytes where a device's memory would have them: blocks are aligned.
struct alignas(64) Block {
  char bytes[64];
};

std::vector<Block> copyOf(const Buffer &buffer) {
  std::vector<Block> blocks(buffer.bytes.size() / sizeof(Block) + 1);
  std::memcpy(blocks.data(), buffer.bytes.data(), buffer.bytes.size());
  return blocks;
}

/// Products of one rank, with a workspace that is not aligned.
struct Rank {
  explicit Rank(FakeBlasLt &library, const std::string &path = "",
                bool allowTf32 = false, bool loadsAhead = false)
      : products(library.driver, "Test GPU", library.loader(),
                 {allowTf32, path, loadsAhead}),
        workspace(kWorkspaceBytes + 16) {}

  void multiply(const RotaGemm &g, const void *a, const void *b, void *c) {
    products.multiply(g, a, b, c, workspace.data() + 16, kWorkspaceBytes,
                      nullptr);
  }
  /// With operands that lie as those of `check`.
  void prepare(const RotaGemm &g) {
    Operands in(g);
    std::vector<Block> a = copyOf(in.a), b = copyOf(in.b), c = copyOf(in.c);
    for (std::vector<Block> *operand : {&a, &b, &c})
      std::ranges::fill(*operand, Block{});
    products.prepare(g, a.data(), b.data(), c.data(), workspace.data() + 16,
                     kWorkspaceBytes, nullptr);
    for (const Block &block : c)
      for (char byte : block.bytes)
        EXPECT_EQ(byte, 0);
  }
  void check(const RotaGemm &g, double roundedShare = 0) {
    Operands in(g);
    std::vector<Block> a = copyOf(in.a), b = copyOf(in.b), c = copyOf(in.c);
    multiply(g, a.data(), b.data(), c.data());
    Buffer result = in.c;
    std::memcpy(result.bytes.data(), c.data(), result.bytes.size());
    expectProduct(g, in, result, roundedShare);
  }

  CublasLtProducts products;
  std::vector<char> workspace;
};

RotaGemm smallGemm(bool accumulate = false) {
  return describeGemm(2, 3, 4, 5, false, true, ROTA_BF16, ROTA_BF16, ROTA_F32,
                      accumulate, 1);
}

/// [type of A and B, type of C, transpose A, transpose B, accumulate]
class CublasLtKinds : public testing::TestWithParam<
                          std::tuple<std::pair<int, int>, bool, bool, bool>> {};

TEST_P(CublasLtKinds, AgreeWithPlainLoop) {
  auto [types, ta, tb, accumulate] = GetParam();
  auto [input, output] = types;
  FakeBlasLt library;
  library.algorithms = {{1, 1.0f, 1024}};
  Rank rank(library);
  std::mt19937 random(7);
  std::uniform_int_distribution<int64_t> size(1, 20), small(0, 3);
  for (int repeat = 0; repeat < 10; ++repeat)
    rank.check(describeGemm(1 + small(random), size(random), size(random),
                            size(random), ta, tb, input, input, output,
                            accumulate, small(random)));
  rank.check(
      describeGemm(1, 1, 1, 1, ta, tb, input, input, output, accumulate, 0));
}

INSTANTIATE_TEST_SUITE_P(
    All, CublasLtKinds,
    testing::Combine(testing::Values(std::pair(ROTA_F32, ROTA_F32),
                                     std::pair(ROTA_BF16, ROTA_BF16),
                                     std::pair(ROTA_BF16, ROTA_F32)),
                     testing::Bool(), testing::Bool(), testing::Bool()));

TEST(CublasLt, EmptySumClearsUnlessItAccumulates) {
  FakeBlasLt library;
  Rank rank(library);
  RotaGemm g = smallGemm();
  g.k = 0;
  rank.check(g);
  g.accumulate = 1;
  rank.check(g);
  EXPECT_EQ(library.used, Numbers());
}

TEST(CublasLt, EmptyResultTouchesNothing) {
  FakeBlasLt library;
  Rank rank(library);
  RotaGemm g = smallGemm();
  g.m = 0;
  rank.multiply(g, nullptr, nullptr, nullptr);
  EXPECT_EQ(library.used, Numbers());
}

TEST(CublasLt, OpensTheLibraryForTheFirstProduct) {
  FakeBlasLt library;
  Rank rank(library);
  RotaGemm g = smallGemm();
  g.k = 0;
  rank.check(g);
  EXPECT_EQ(library.opened, 0);
  EXPECT_EQ(library.live, 0);
  rank.prepare(smallGemm());
  EXPECT_EQ(library.opened, 1);
  EXPECT_EQ(library.searches, 0);
  rank.check(smallGemm());
  EXPECT_EQ(library.opened, 1);
  EXPECT_EQ(library.used, Numbers{1});
}

TEST(CublasLt, RunsEachProductAhead) {
  FakeBlasLt library;
  library.algorithms = {{1, 3.0f}, {2, 0.5f}};
  TemporaryFolder folder;
  Rank rank(library, folder.path("algorithms"), false, /*loadsAhead=*/true);
  for (bool accumulate : {false, true})
    rank.prepare(smallGemm(accumulate));
  EXPECT_EQ(library.used.back(), 2u);
  int searches = library.searches;
  library.used.clear();
  library.isCaptured = true; // nothing could be measured
  for (bool accumulate : {false, true})
    rank.check(smallGemm(accumulate));
  EXPECT_EQ(library.used, (Numbers{2, 2}));
  EXPECT_EQ(library.searches, searches);
}

TEST(CublasLt, RefusesWhatTheLibraryLacks) {
  FakeBlasLt library;
  Rank rank(library);
  auto messageFor = [&](const RotaGemm &g) {
    return messageOf<RunError>([&] { rank.check(g); });
  };
  RotaGemm g = smallGemm();
  g.lda = 4;
  EXPECT_EQ(messageFor(g),
            "gemm of 3 x 4 x 5, bf16 by bf16 to f32: expected an "
            "A row distance of at least 5, got 4");
  g = smallGemm();
  g.typeB = ROTA_F32;
  EXPECT_EQ(messageFor(g),
            "gemm of 3 x 4 x 5, bf16 by f32 to f32: cuBLASLt has "
            "no product of these types");
  g.typeA = ROTA_F32;
  g.typeC = ROTA_BF16;
  EXPECT_EQ(messageFor(g),
            "gemm of 3 x 4 x 5, f32 by f32 to bf16: cuBLASLt has "
            "no product of these types");
  library.algorithms = {{1, 1.0f, 2 * kWorkspaceBytes}};
  EXPECT_EQ(messageFor(smallGemm()),
            "gemm of 3 x 4 x 5, bf16 by bf16 to f32: "
            "cublasLtMatmulAlgoGetHeuristic: CUBLAS_STATUS_NOT_SUPPORTED");
  library.algorithms = {{1, 1.0f}};
  library.algorithms[0].isRefused = true;
  EXPECT_EQ(messageFor(smallGemm()),
            "gemm of 3 x 4 x 5, bf16 by bf16 to f32: cublasLtMatmul: "
            "CUBLAS_STATUS_NOT_SUPPORTED");
}

TEST(CublasLt, RoundsToTf32WhereAllowed) {
  FakeBlasLt library;
  RotaGemm f32 = describeGemm(1, 2, 3, 4, false, false, ROTA_F32, ROTA_F32,
                              ROTA_F32, false, 0);
  for (bool allowTf32 : {false, true}) {
    Rank rank(library, "", allowTf32);
    rank.check(f32);
    EXPECT_EQ(library.computeType,
              allowTf32 ? kBlasComputeTf32 : kBlasComputeF32);
    rank.check(smallGemm());
    EXPECT_EQ(library.computeType, kBlasComputeF32);
  }
}

TEST(CublasLt, SearchesOnceForADescription) {
  FakeBlasLt library;
  Rank rank(library);
  for (int repeat = 0; repeat < 3; ++repeat)
    rank.check(smallGemm());
  EXPECT_EQ(library.searches, 1);
  int live = library.live;
  // Strides of a single batch make no difference, the accumulation does.
  RotaGemm g = smallGemm();
  g.batch = 1;
  rank.check(g);
  g.strideA += 2;
  rank.check(g);
  EXPECT_EQ(library.searches, 2);
  EXPECT_EQ(library.live, 2 * live - 1) << "one context";
  rank.check(smallGemm(true));
  EXPECT_EQ(library.searches, 3);
}

TEST(CublasLt, TakesWhatFitsTheAddresses) {
  FakeBlasLt library;
  // Need an aligned B, A, C: the library's operands are swapped.
  library.algorithms = {{1, 1.0f, 0, 0, {32, 1, 1}},
                        {2, 1.0f, 0, 0, {1, 32, 1}},
                        {3, 1.0f, 0, 0, {1, 1, 32}},
                        {4, 1.0f}};
  Rank rank(library);
  RotaGemm g = describeGemm(1, 2, 2, 2, false, false, ROTA_F32, ROTA_F32,
                            ROTA_F32, false, 0);
  alignas(64) float memory[64] = {};
  rank.multiply(g, memory, memory + 16, memory + 32);
  rank.multiply(g, memory, memory + 20, memory + 32);
  rank.multiply(g, memory + 4, memory + 20, memory + 32);
  rank.multiply(g, memory + 4, memory + 20, memory + 36);
  EXPECT_EQ(library.used, (Numbers{1, 2, 3, 4}));
}

TEST(CublasLt, StaysInItsWorkspace) {
  FakeBlasLt library;
  // The first does not fit where the workspace is not aligned.
  library.algorithms = {{1, 1.0f, kWorkspaceBytes},
                        {2, 1.0f, kWorkspaceBytes - 256}};
  Rank rank(library);
  RotaGemm g = describeGemm(1, 2, 2, 2, false, false, ROTA_F32, ROTA_F32,
                            ROTA_F32, false, 0);
  float memory[12] = {};
  std::string space(kWorkspaceBytes + 1024, '.');
  for (int64_t begin : {256, 320, 384, 512}) {
    std::string used = space;
    rank.products.multiply(g, memory, memory + 4, memory + 8,
                           used.data() + begin, kWorkspaceBytes, nullptr);
    int64_t end = begin + kWorkspaceBytes;
    EXPECT_EQ(used.substr(0, begin), space.substr(0, begin));
    EXPECT_EQ(used.substr(end), space.substr(end));
  }
  EXPECT_EQ(library.used, (Numbers{2, 2, 2, 2}));
}

TEST(CublasLt, HasAllOfTheRecommendedWorkspace) {
  Program program;
  program.device = DeviceKind::Cuda;
  program.mesh = {{"stage", 1}};
  program.stages.resize(1);
  int64_t bytes = runtimeMemory(program).workspaceBytes;
  FakeBlasLt library;
  library.algorithms = {{1, 1.0f, 32 << 20}};
  CublasLtProducts products(library.driver, "Test GPU", library.loader(), {});
  std::vector<Block> space(bytes / int64_t(sizeof(Block)));
  float memory[12] = {};
  products.multiply(describeGemm(1, 2, 2, 2, false, false, ROTA_F32, ROTA_F32,
                                 ROTA_F32, false, 0),
                    memory, memory + 4, memory + 8, space.data(), bytes,
                    nullptr);
  EXPECT_EQ(library.used, Numbers{1});
}

TEST(CublasLt, ExcludesSumsThatAreRoundedOrUnordered) {
  FakeBlasLt library;
  library.algorithms = {{1, 1.0f, 0, kBlasLtReduceInPlace},
                        {2, 1.0f, 0, kBlasLtReduceOutputType},
                        {3, 1.0f, 0, kBlasLtReduceComputeType}};
  Rank rank(library);
  rank.check(smallGemm());
  EXPECT_EQ(library.used, Numbers{3});
}

/// A library with a file for its choices.
class CublasLtChoice : public testing::Test {
protected:
  CublasLtChoice() {
    library.algorithms = {{1, 3.0f}, {2, 0.5f, 1024}, {3, 1.0f}};
  }
  /// The algorithm that a new rank takes for the product, and whether it has
  /// measured any.
  std::pair<uint64_t, bool> choose(bool accumulate = false) {
    Rank rank(library, path);
    library.used.clear();
    rank.check(smallGemm(accumulate));
    return {library.used.back(), library.used.size() > 1};
  }

  FakeBlasLt library;
  TemporaryFolder folder;
  std::string path = folder.path("cache/algorithms");
};

TEST_F(CublasLtChoice, IsTheFastest) {
  EXPECT_EQ(choose(), std::pair(uint64_t(2), true));
  EXPECT_EQ(choose(true), std::pair(uint64_t(2), true));
  std::string text = folder.read("cache/algorithms");
  EXPECT_NE(text.find("Test GPU, cublasLt 130100, gemm of 3 x 4 x 5, bf16 by "
                      "bf16 to f32, B transposed, accumulated, batch 2"),
            text.npos)
      << text;
}

TEST_F(CublasLtChoice, LeavesOutWhatTheGpuRefuses) {
  library.algorithms[1].isRefused = true;
  CaptureStderr();
  EXPECT_EQ(choose(), std::pair(uint64_t(3), true));
  std::string text = GetCapturedStderr();
  EXPECT_EQ(text.find("note: 1 of 3 algorithms of Test GPU, "), 0u) << text;
  EXPECT_NE(text.find(" fail: CUBLAS_STATUS_NOT_SUPPORTED\n"), text.npos)
      << text;
}

TEST_F(CublasLtChoice, FailsWhereAllAreRefused) {
  for (FakeAlgorithm &algorithm : library.algorithms)
    algorithm.isRefused = true;
  EXPECT_EQ(messageOf<RunError>([&] { choose(); }),
            "gemm of 3 x 4 x 5, bf16 by bf16 to f32: cublasLtMatmul: "
            "CUBLAS_STATUS_NOT_SUPPORTED");
}

TEST_F(CublasLtChoice, NamesTheProductThatBreaksTheGpu) {
  library.algorithms[1].isFatal = true;
  EXPECT_EQ(messageOf<DeviceError>([&] { choose(); }),
            "gemm of 3 x 4 x 5, bf16 by bf16 to f32: measuring 2 of 3: "
            "cuEventSynchronize: an illegal memory access was encountered "
            "(700); with ROTA_ALGORITHM_FILE= nothing is measured");
  EXPECT_EQ(messageOf<DeviceError>([&] { choose(true); }),
            "cuEventSynchronize: an illegal memory access was encountered "
            "(700)")
      << "another product, which is not to blame";
}

TEST_F(CublasLtChoice, IsKeptForLaterRuns) {
  choose();
  library.algorithms[0].milliseconds = 0.1f;
  EXPECT_EQ(choose(), std::pair(uint64_t(2), false));
  EXPECT_EQ(choose(true), std::pair(uint64_t(1), true)) << "another product";
}

TEST_F(CublasLtChoice, IsThatOfTheFirstToWrite) {
  Rank first(library, path), second(library, path);
  first.check(smallGemm());
  library.algorithms[0].milliseconds = 0.1f;
  library.used.clear();
  second.check(smallGemm());
  EXPECT_EQ(library.used.front(), 1u) << "measured";
  EXPECT_EQ(library.used.back(), 2u);
}

TEST_F(CublasLtChoice, IsTheFirstProposalWithoutFile) {
  path = "";
  EXPECT_EQ(choose(), std::pair(uint64_t(1), false));
  path = folder.write("file", "") + "/algorithms";
  CaptureStderr();
  EXPECT_EQ(choose().first, 1u);
  std::string text = GetCapturedStderr();
  EXPECT_EQ(text.find("warning: algorithms are not kept in '" + path + "': "),
            0u)
      << text;
}

TEST_F(CublasLtChoice, IsTheFirstProposalDuringCapture) {
  library.isCaptured = true;
  EXPECT_EQ(choose(), std::pair(uint64_t(1), false));
}

TEST_F(CublasLtChoice, IsTheFirstProposalWithoutMemoryForACopy) {
  for (Result result : {kOutOfMemory, kNotSupported}) {
    library.allocation = result;
    EXPECT_EQ(choose(true), std::pair(uint64_t(1), false));
  }
  EXPECT_EQ(choose(false), std::pair(uint64_t(2), true)) << "needs no copy";
}

TEST_F(CublasLtChoice, WarnsOfAnAlgorithmThatTheLibraryRefuses) {
  choose();
  library.algorithms[1].number = 4;
  CaptureStderr();
  EXPECT_EQ(choose(), std::pair(uint64_t(1), false));
  std::string text = GetCapturedStderr();
  EXPECT_EQ(text.find("warning: cuBLASLt refuses the algorithm in '" + path +
                      "' for Test GPU, "),
            0u)
      << text;
}

/// The products of a loss of 1025 classes, whose rows are 1032 elements apart:
/// logits, the input's gradient, the weights' gradient.
std::vector<RotaGemm> oddGemms() {
  auto describe = [](int64_t m, int64_t n, int64_t k, bool ta, bool tb,
                     int typeC, bool accumulate) {
    return describeGemm(1, m, n, k, ta, tb, ROTA_BF16, ROTA_BF16, typeC,
                        accumulate, 0);
  };
  RotaGemm logits = describe(8, 1025, 16, false, true, ROTA_BF16, false);
  logits.ldc = 1032, logits.strideC = 8 * 1032;
  RotaGemm input = describe(8, 16, 1025, false, false, ROTA_BF16, false);
  input.lda = 1032, input.strideA = 8 * 1032;
  RotaGemm weights = describe(1025, 16, 8, true, false, ROTA_F32, true);
  weights.lda = 1032, weights.strideA = 8 * 1032;
  return {logits, input, weights};
}

TEST_F(CublasLtChoice, CutsOddRowsWhereThatIsFaster) {
  for (bool isSlow : {true, false}) {
    library.algorithms = {{1, 1.0f}};
    library.algorithms[0].oddMilliseconds = isSlow ? 5.0f : 0.5f;
    path = folder.path(isSlow ? "slow" : "fast");
    for (const RotaGemm &g : oddGemms()) {
      // The second rank measures nothing.
      for (int repeat = 0; repeat < 2; ++repeat) {
        Rank rank(library, path);
        double nineTerms = 2 * 9.0 / 1025;
        rank.check(g, nineTerms);
        library.used.clear();
        rank.check(g, nineTerms);
        EXPECT_EQ(library.used.size(), isSlow ? 2u : 1u);
      }
      Rank withoutFile(library);
      library.used.clear();
      withoutFile.check(g);
      EXPECT_EQ(library.used.size(), 1u);
    }
  }
}

TEST_F(CublasLtChoice, StaysWholeWhereAPartHasNoAlgorithm) {
  for (int64_t FakeBlasLt::*size :
       {&FakeBlasLt::unknownSize, &FakeBlasLt::failingSize}) {
    library.algorithms = {{1, 1.0f}, {2, 2.0f}};
    for (FakeAlgorithm &algorithm : library.algorithms)
      algorithm.oddMilliseconds = 5.0f; // the parts would be faster
    library.unknownSize = library.failingSize = 0;
    library.*size = 129;
    path = folder.path(size == &FakeBlasLt::unknownSize ? "unknown" : "fails");
    for (bool isFirst : {true, false}) {
      Rank rank(library, path);
      CaptureStderr();
      rank.check(oddGemms().front());
      std::string text = GetCapturedStderr();
      EXPECT_EQ(text.find("note: gemm of 8 x 129 x 16") == 0, isFirst) << text;
      library.used.clear();
      rank.check(oddGemms().front());
      EXPECT_EQ(library.used.size(), 1u);
    }
  }
}

TEST(GemmParts, AreNoVectors) {
  for (int64_t size = 1025; size < 1400; ++size)
    for (RotaGemm g : oddGemms()) {
      for (int64_t *one : {&g.m, &g.n, &g.k})
        *one = *one == 1025 ? size : *one;
      for (int64_t *one : {&g.lda, &g.ldb, &g.ldc})
        *one = *one == 1032 ? 1400 : *one;
      for (const GemmPart &part : cutGemm(g))
        EXPECT_GE(std::min({part.gemm.m, part.gemm.n, part.gemm.k}), 8)
            << toString(part.gemm);
    }
}

TEST(GemmParts, AreOfOneLongOddSize) {
  std::vector<RotaGemm> odd = oddGemms();
  for (const RotaGemm &g : odd)
    EXPECT_EQ(cutGemm(g).size(), 2u) << toString(g);
  // The last terms of a sum come first, and the others are added to them.
  std::vector<GemmPart> sum = cutGemm(odd[1]);
  EXPECT_EQ(sum[0].gemm.k, 9);
  EXPECT_EQ(sum[0].gemm.accumulate, 0);
  EXPECT_EQ(sum[1].gemm.k, 1016);
  EXPECT_EQ(sum[1].gemm.accumulate, 1);

  RotaGemm whole = odd[0];
  whole.n = 1032;
  RotaGemm shifted = odd[0];
  shifted.ldc = 1033;
  RotaGemm two = odd[0];
  two.k = 12, two.lda = two.ldb = 16;
  RotaGemm batch = odd[0];
  batch.batch = 2;
  RotaGemm small = odd[0];
  small.n = 1001;
  for (const RotaGemm &g : {whole, shifted, two, batch, small})
    EXPECT_TRUE(cutGemm(g).empty()) << toString(g);
}

} // namespace
