// SPDX-License-Identifier: Apache-2.0
//
// Launches of kernels that are written in C++ and call the services themselves.
#include "runtime/device/simt/Simt.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <gtest/gtest.h>
#include <limits>
#include <thread>

using namespace rota::simt;
using Lines = std::vector<std::string>;

namespace {

/// Sites 1 to 4 of all kernels here.
const char *const kSites[] = {"k.cpp:1 (first)", "k.cpp:2 (second)",
                              "k.cpp:3 (third)", "k.cpp:4 (fourth)"};

RotaSimtKernel kernelOf(void (*entry)(void *const *), int64_t sharedBytes = 0) {
  static const int32_t kPointer[] = {8};
  return {entry, "k", kSites, 4, sharedBytes, /*checked=*/1, 1, kPointer, 0};
}

template <typename T> T &argument(void *const *arguments, int index) {
  return **static_cast<T *const *>(arguments[index]);
}

/// Runs with one argument: a pointer.
Lines run(Emulator &emulator, const RotaSimtKernel &kernel, Launch launch,
          void *pointer = nullptr) {
  void *arguments[] = {&pointer};
  launch.arguments = arguments;
  return emulator.launch(kernel, launch);
}

TEST(Emulator, IndicesAndSizes) {
  auto entry = [](void *const *arguments) {
    uint32_t *out = &argument<uint32_t>(arguments, 0);
    uint32_t place = 0;
    for (uint32_t d : {2, 1, 0})
      place = place * rotaSimtGridSize(d) + rotaSimtBlockIndex(d);
    uint32_t thread = 0, threads = 1;
    for (uint32_t d : {2, 1, 0}) {
      thread = thread * rotaSimtBlockSize(d) + rotaSimtThreadIndex(d);
      threads *= rotaSimtBlockSize(d);
    }
    EXPECT_EQ(rotaSimtWarp() * 32 + rotaSimtLane(), thread);
    out[place * threads + thread] += 1 + place;
  };
  std::vector<uint32_t> out(2 * 3 * 2 * 40);
  Emulator emulator;
  Launch launch{{2, 3, 2}, {5, 4, 2}};
  EXPECT_EQ(run(emulator, kernelOf(entry), launch, out.data()), Lines());
  for (size_t i = 0; i < out.size(); ++i)
    EXPECT_EQ(out[i], 1 + i / 40);
}

TEST(Emulator, SizesHaveBounds) {
  auto entry = [](void *const *) { ADD_FAILURE() << "runs"; };
  Emulator emulator;
  EXPECT_EQ(
      run(emulator, kernelOf(entry), {{1}, {33, 32}}),
      Lines{"kernel 'k': expected at least one block of 1 to 1024 "
            "threads, got a grid of 1 x 1 x 1 and blocks of 33 x 32 x 1"});
  EXPECT_EQ(run(emulator, kernelOf(entry, 1000), {{1}, {1}, 232000}),
            Lines{"kernel 'k': expected at most 232448 bytes of shared memory, "
                  "got 1000 of fixed size and 232000 more"});
}

TEST(Emulator, Deadlock) {
  auto entry = [](void *const *) {
    if (rotaSimtWarp() == 0)
      rotaSimtBarrier(1);
  };
  Emulator emulator;
  EXPECT_EQ(run(emulator, kernelOf(entry), {{1}, {64}}),
            Lines{"kernel 'k', block (0, 0, 0), thread 0, k.cpp:1 (first): "
                  "deadlock: 32 of 64 threads wait for ever; thread 32 has "
                  "ended"});
}

TEST(Emulator, DivergentBarriers) {
  auto twoPlaces = [](void *const *) {
    rotaSimtBarrier(rotaSimtLane() < 16 ? 1 : 2);
  };
  Emulator emulator;
  EXPECT_EQ(run(emulator, kernelOf(twoPlaces), {{1}, {32}}),
            Lines{"kernel 'k', block (0, 0, 0), thread 16, k.cpp:2 (second): "
                  "divergent barrier: thread 0 of the same warp waits at "
                  "k.cpp:1 (first)"});
  auto ended = [](void *const *) {
    if (rotaSimtLane() != 7)
      rotaSimtBarrier(1);
  };
  EXPECT_EQ(
      run(emulator, kernelOf(ended), {{1}, {64}}),
      Lines{"kernel 'k', block (0, 0, 0), thread 0, k.cpp:1 (first): "
            "divergent barrier: waits for ever: thread 7 of the same warp "
            "has ended"});
}

TEST(Emulator, DivergentCollectives) {
  auto shuffles = [](void *const *) {
    if (rotaSimtLane() != 3)
      rotaSimtShuffle(ROTA_SIMT_SHUFFLE_INDEX, 0xFFFFFFFF, 0, 0, 1);
    else
      rotaSimtBallot(0xFFFFFFFF, 1, 2);
  };
  Emulator emulator;
  EXPECT_EQ(run(emulator, kernelOf(shuffles), {{1}, {32}}),
            Lines{"kernel 'k', block (0, 0, 0), thread 3, k.cpp:2 (second): "
                  "divergent collective: waits for ever: thread 0 of the same "
                  "warp waits at k.cpp:1 (first)"});
  auto mask = [](void *const *) { rotaSimtBallot(0xFFFFFFF7, 1, 1); };
  EXPECT_EQ(run(emulator, kernelOf(mask), {{1}, {32}}),
            Lines{"kernel 'k', block (0, 0, 0), thread 3, k.cpp:1 (first): "
                  "invalid operand: expected lane 3 in its own mask, got "
                  "0xfffffff7"});
}

/// Warps of fewer than 32 lanes: masks name lanes that do not exist.
TEST(Emulator, LastWarpMayBeShort) {
  auto entry = [](void *const *arguments) {
    uint32_t t = rotaSimtThreadIndex(0);
    (&argument<uint32_t>(arguments, 0))[t] =
        rotaSimtBallot(0xFFFFFFFF, t % 2, 1);
    rotaSimtBarrier(2);
  };
  std::vector<uint32_t> out(40);
  Emulator emulator;
  EXPECT_EQ(run(emulator, kernelOf(entry), {{1}, {40}}, out.data()), Lines());
  EXPECT_EQ(out[0], 0xAAAAAAAAu);
  EXPECT_EQ(out[39], 0xAAu);
}

TEST(Emulator, MatricesNeedAWholeWarp) {
  auto entry = [](void *const *) {
    uint32_t result[2];
    if (rotaSimtWarp() == 1)
      rotaSimtLoadMatrix(result, rotaSimtSharedMemory(), 2, 0, 1);
  };
  Emulator emulator;
  EXPECT_EQ(run(emulator, kernelOf(entry, 16), {{1}, {40}}),
            Lines{"kernel 'k', block (0, 0, 0), thread 32, k.cpp:1 (first): "
                  "invalid operand: expected a whole warp, got one with the "
                  "lanes 0x000000ff"});
}

TEST(Emulator, GlobalMemoryHasBounds) {
  auto entry = [](void *const *arguments) {
    float *data = &argument<float>(arguments, 0);
    rotaSimtRead(data + 1022 + rotaSimtThreadIndex(0), 8, 4, 1);
  };
  std::vector<float> data(1024);
  Emulator emulator;
  EXPECT_EQ(run(emulator, kernelOf(entry), {{1}, {4}}, data.data()), Lines());
  emulator.addBuffer("x", data.data(), 4096);
  EXPECT_EQ(
      run(emulator, kernelOf(entry), {{1}, {4}}, data.data()),
      Lines{"kernel 'k', block (0, 0, 0), thread 1, k.cpp:1 (first): out "
            "of bounds: reads 8 bytes at byte 4092 of 'x', which has 4096 "
            "bytes"});
}

TEST(Emulator, RemovedBuffersAreOutOfBounds) {
  auto entry = [](void *const *arguments) {
    rotaSimtRead(&argument<char>(arguments, 0), 1, 1, 1);
  };
  char data[64];
  Emulator emulator;
  emulator.addBuffer("x", data, 1);
  emulator.addBuffer("y", data + 32, 1);
  EXPECT_EQ(run(emulator, kernelOf(entry), {}, data), Lines());
  emulator.removeBuffer(data);
  EXPECT_EQ(run(emulator, kernelOf(entry), {}, data + 32), Lines());
  EXPECT_EQ(run(emulator, kernelOf(entry), {}, data),
            Lines{"kernel 'k', block (0, 0, 0), thread 0, k.cpp:1 (first): out "
                  "of bounds: reads 1 bytes at byte -32 of 'y', which has 1 "
                  "bytes"});
}

TEST(Emulator, ResultsAreNotReadBeforeTheyAreWritten) {
  auto entry = [](void *const *arguments) {
    char *data = &argument<char>(arguments, 0);
    rotaSimtWrite(data, 4, 4, nullptr, 1);
    rotaSimtRead(data, 4, 4, 2);
    rotaSimtRead(data + 2, 4, 2, 3);
  };
  std::vector<char> data(64);
  Emulator emulator;
  emulator.addBuffer("y", data.data(), 64, /*written=*/false);
  EXPECT_EQ(run(emulator, kernelOf(entry), {{1}, {1}}, data.data()),
            Lines{"kernel 'k', block (0, 0, 0), thread 0, k.cpp:3 (third): "
                  "uninitialized: reads byte 4 of 'y', which was never "
                  "written"});
}

/// A thread's own stack is neither shared nor global memory.
TEST(Emulator, StacksNeedNoBuffer) {
  auto entry = [](void *const *) {
    int local = 0;
    rotaSimtWrite(&local, 4, 4, nullptr, 1);
  };
  char byte = 0;
  Emulator emulator;
  emulator.addBuffer("x", &byte, 1);
  EXPECT_EQ(run(emulator, kernelOf(entry), {{1}, {1}}), Lines());
}

/// Copies land at the wait, the source as it is then; the rest is zeros.
TEST(Emulator, CopiesLandAtTheirWait) {
  auto entry = [](void *const *arguments) {
    uint32_t *from = &argument<uint32_t>(arguments, 0);
    auto *shared = static_cast<uint32_t *>(rotaSimtSharedMemory());
    rotaSimtCopyAsync(shared, from, 16, 12, 1);
    rotaSimtCommitCopies();
    rotaSimtCopyAsync(shared + 4, from, 16, 16, 1);
    rotaSimtCommitCopies();
    rotaSimtWaitCopies(1);
    EXPECT_EQ(shared[2], from[2]);
    EXPECT_EQ(shared[3], 0u);
    EXPECT_EQ(shared[4], 0xFFFFFFFFu); // as at the start of a block
    rotaSimtWaitCopies(0);
    EXPECT_EQ(shared[7], from[3]);
  };
  alignas(16) uint32_t from[] = {1, 2, 3, 4};
  Emulator emulator;
  EXPECT_EQ(run(emulator, kernelOf(entry, 32), {{1}, {1}}, from), Lines());
  auto forgets = [](void *const *arguments) {
    rotaSimtCopyAsync(rotaSimtSharedMemory(), &argument<uint32_t>(arguments, 0),
                      16, 16, 1);
  };
  EXPECT_EQ(run(emulator, kernelOf(forgets, 16), {{1}, {1}}, from),
            Lines{"kernel 'k', block (0, 0, 0), thread 0, k.cpp:1 (first): "
                  "asynchronous copy: the thread ends without a wait for this "
                  "copy"});
}

/// The first of the blocks that fail on several host threads is reported.
TEST(Emulator, ReportsDoNotDependOnHostThreads) {
  auto entry = [](void *const *) {
    if (rotaSimtBlockIndex(0) >= 37)
      rotaSimtShuffle(ROTA_SIMT_SHUFFLE_INDEX, 0, 0, 0, 1);
  };
  Emulator emulator;
  Launch launch{{200}, {2}};
  Lines expected = run(emulator, kernelOf(entry), launch);
  ASSERT_EQ(expected.size(), 1u);
  EXPECT_NE(expected[0].find("block (37, 0, 0)"), std::string::npos);
  launch.runPieces = [](int64_t pieces, const auto &body) {
    std::thread last([&] {
      for (int64_t piece = pieces - 1; piece >= pieces / 2; --piece)
        body(piece);
    });
    for (int64_t piece = 0; piece < pieces / 2; ++piece)
      body(piece);
    last.join();
  };
  EXPECT_EQ(run(emulator, kernelOf(entry), launch), expected);
}

TEST(Emulator, SeedsGiveOrders) {
  auto entry = [](void *const *arguments) {
    auto &order = argument<std::vector<uint32_t>>(arguments, 0);
    order.push_back(rotaSimtThreadIndex(0));
  };
  Emulator emulator;
  auto orderOf = [&](std::optional<uint64_t> seed) {
    std::vector<uint32_t> order;
    Launch launch{{1}, {50}};
    launch.seed = seed;
    EXPECT_EQ(run(emulator, kernelOf(entry), launch, &order), Lines());
    return order;
  };
  std::vector<uint32_t> ascending = orderOf(std::nullopt), random = orderOf(1);
  EXPECT_TRUE(std::is_sorted(ascending.begin(), ascending.end()));
  EXPECT_FALSE(random == ascending);
  EXPECT_TRUE(random == orderOf(1));
  EXPECT_FALSE(random == orderOf(2));
  std::sort(random.begin(), random.end());
  EXPECT_TRUE(random == ascending);
}

TEST(Emulator, ReportsAreFew) {
  auto entry = [](void *const *) {
    auto *shared = static_cast<char *>(rotaSimtSharedMemory());
    for (uint32_t site = 1; site <= 4; ++site) {
      rotaSimtRead(shared, 4, 4, site);
      rotaSimtRead(shared + 4, 4, 4, site);
    }
  };
  Emulator emulator;
  Launch launch{{3}, {2}};
  EXPECT_EQ(run(emulator, kernelOf(entry, 8), launch).size(), 4u);
  launch.maxReports = 3;
  EXPECT_EQ(run(emulator, kernelOf(entry, 8), launch).size(), 3u);
}

/// Each block stores its number at 16 bytes times `distance` of its number.
Lines reportsOfBlocks(uint32_t distance, uint32_t reads) {
  static uint32_t factor, readDistance;
  factor = distance;
  readDistance = reads;
  auto entry = [](void *const *arguments) {
    uint32_t *out = &argument<uint32_t>(arguments, 0);
    uint32_t block = rotaSimtBlockIndex(0), number = block;
    rotaSimtRead(out + 16 + readDistance * block, 4, 4, 1);
    rotaSimtWrite(out + factor * block, 4, 4, &number, 2);
    out[factor * block] = number;
  };
  std::vector<uint32_t> out(64);
  Emulator emulator;
  emulator.addBuffer("out", out.data(), 4 * out.size());
  return run(emulator, kernelOf(entry), {{3}, {1}}, out.data());
}

TEST(Emulator, BlocksHaveNoOrder) {
  EXPECT_EQ(reportsOfBlocks(1, 1), Lines());
  EXPECT_EQ(reportsOfBlocks(1, 0), Lines()); // all read one place
  EXPECT_EQ(reportsOfBlocks(0, 1),
            Lines{"kernel 'k', block (1, 0, 0), thread 0, k.cpp:2 (second): "
                  "race: writes bytes 0 to 3 of 'out', which block 0 of the "
                  "launch writes"});
  EXPECT_EQ(reportsOfBlocks(8, 0),
            Lines{"kernel 'k', block (2, 0, 0), thread 0, k.cpp:2 (second): "
                  "race: writes bytes 64 to 67 of 'out', which other blocks of "
                  "the launch read"});
  EXPECT_EQ(reportsOfBlocks(16, 4),
            Lines{"kernel 'k', block (1, 0, 0), thread 0, k.cpp:2 (second): "
                  "race: writes bytes 64 to 67 of 'out', which block 0 of the "
                  "launch reads"});
}

/// Launches of one emulator follow each other.
TEST(Emulator, LaunchesHaveAnOrder) {
  auto entry = [](void *const *arguments) {
    uint32_t *out = &argument<uint32_t>(arguments, 0) + rotaSimtBlockIndex(0);
    rotaSimtWrite(out, 4, 4, nullptr, 1);
  };
  std::vector<uint32_t> out(64);
  Emulator emulator;
  emulator.addBuffer("out", out.data(), 4 * out.size());
  for (uint32_t blocks : {3u, 5u, 2u})
    EXPECT_EQ(run(emulator, kernelOf(entry), {{blocks}, {1}}, out.data()),
              Lines());
}

/// A kernel that counts on the bits of a function that GPUs approximate, such
/// as an exponential whose powers multiply to 1, has other results.
TEST(Emulator, ApproximateFunctionsMayBeOff) {
  float (*functions[])(float) = {rotaSimtExp2, rotaSimtLog2, rotaSimtSqrt,
                                 rotaSimtReciprocalSqrt, rotaSimtReciprocal};
  auto bitsOf = [](float x) { return std::bit_cast<int32_t>(x); };
  for (auto *function : functions) {
    int off = 0;
    for (float x = 0.25f; x < 64.0f; x *= 1.0625f) {
      int32_t exact = bitsOf(function(x));
      perturbApproximations(7);
      int32_t near = bitsOf(function(x));
      EXPECT_EQ(near, bitsOf(function(x)));
      perturbApproximations(0);
      EXPECT_LE(std::abs(near - exact), 2) << x;
      off += near != exact;
    }
    EXPECT_GT(off, 10);
  }
  perturbApproximations(7);
  EXPECT_EQ(rotaSimtExp2(0.0f), 1.0f);
  EXPECT_EQ(rotaSimtExp2(-200.0f), 0.0f);
  EXPECT_EQ(rotaSimtSqrt(0.0f), 0.0f);
  EXPECT_EQ(rotaSimtReciprocal(std::numeric_limits<float>::infinity()), 0.0f);
  perturbApproximations(0);
}

} // namespace
