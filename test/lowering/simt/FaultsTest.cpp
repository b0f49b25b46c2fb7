// SPDX-License-Identifier: Apache-2.0
//
// Each class of errors in a kernel is reported with the kernel, the thread and
// the line of the source. Lines are counted from the raw string's first.
#include "test/lowering/simt/EmulatedKernels.h"
#include "test/lowering/simt/SampleKernels.h"

#include <gtest/gtest.h>

using rota::lowering::GpuSynchronization;

namespace rota::test {
namespace {

/// A kernel @k of those lines, from line 5 of the module on, with 64 floats
/// @s in shared memory at %s, this thread %t, a pointer %x to 64 floats, a
/// result %y of as many, and the integer %n.
std::string moduleOf(const std::string &lines) {
  return R"(gpu.module @kernels { llvm.mlir.global internal @s() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<64 x f32>
    gpu.func @k(%x: !llvm.ptr<1>, %y: !llvm.ptr<1>, %n: i32) kernel {
      %t = nvvm.read.ptx.sreg.tid.x : i32
      %s = llvm.mlir.addressof @s : !llvm.ptr<3>
)" + lines +
         R"(
      gpu.return
    }
  })";
}

/// The reports of one block of 64 threads, one a line.
std::string reportsOf(const std::string &lines, int32_t n) {
  auto gpu = GpuKernels::parse(moduleOf(lines));
  if (!*gpu)
    return gpu->takeDiagnostics();
  auto kernels = gpu->compile();
  if (!kernels)
    return gpu->takeDiagnostics();
  const RotaSimtKernel *kernel = kernels->find("k");
  if (!kernel)
    return "no kernel";
  SampleCall call{{1}, {64}, 0, {std::vector<char>(256)}, 256, {n}, nullptr};
  std::string text;
  for (const std::string &report : run(call, *kernel).reports)
    text += report + "\n";
  return text;
}

const char *const kBlock = "kernel 'k', block (0, 0, 0), ";

TEST(Faults, OutOfBounds) {
  const char *store = R"(      %i = arith.addi %t, %n : i32
      %p = llvm.getelementptr %y[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
      llvm.store %t, %p : i32, !llvm.ptr<1>)";
  EXPECT_EQ(reportsOf(store, 0), "");
  EXPECT_EQ(reportsOf(store, 3),
            std::string(kBlock) +
                "thread 61, test.mlir:7:7 (store): out of bounds: writes 4 "
                "bytes at byte 256 of 'result', which has 256 bytes\n");
}

TEST(Faults, OutOfBoundsOfSharedMemory) {
  const char *store = R"(      %i = arith.addi %t, %n : i32
      %p = llvm.getelementptr %s[%i] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
      llvm.store %t, %p : i32, !llvm.ptr<3>
      nvvm.barrier
      %v = llvm.load %s : !llvm.ptr<3> -> i32
      llvm.store %v, %y : i32, !llvm.ptr<1>)";
  EXPECT_EQ(reportsOf(store, 0), "");
  EXPECT_EQ(reportsOf(store, -1),
            std::string(kBlock) +
                "thread 0, test.mlir:7:7 (store): out of bounds: 4 bytes at "
                "byte -4 of shared memory, which has 256 bytes\n");
}

TEST(Faults, Misaligned) {
  const char *load =
      R"(      %p = llvm.getelementptr %x[%n] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
      %v = llvm.load %p {alignment = 8 : i64} : !llvm.ptr<1> -> vector<2xf32>
      llvm.store %v, %y {alignment = 8 : i64} : vector<2xf32>, !llvm.ptr<1>)";
  EXPECT_EQ(reportsOf(load, 2), "");
  EXPECT_EQ(reportsOf(load, 5),
            std::string(kBlock) +
                "thread 0, test.mlir:6:12 (load): misaligned: expected an "
                "address that is a multiple of 8, got 4 more\n");
}

TEST(Faults, Uninitialized) {
  const char *load = R"(      %isWriter = arith.cmpi slt, %t, %n : i32
      %p = llvm.getelementptr %s[%t] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
      scf.if %isWriter {
        llvm.store %t, %p : i32, !llvm.ptr<3>
      }
      nvvm.barrier
      %v = llvm.load %p : !llvm.ptr<3> -> i32
      %q = llvm.getelementptr %y[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
      llvm.store %v, %q : i32, !llvm.ptr<1>)";
  EXPECT_EQ(reportsOf(load, 64), "");
  EXPECT_EQ(reportsOf(load, 50),
            std::string(kBlock) +
                "thread 63, test.mlir:11:12 (load): uninitialized: reads byte "
                "252 of shared memory, which no thread of the block wrote\n");
}

/// Results of a kernel are not its inputs.
TEST(Faults, UninitializedResult) {
  EXPECT_EQ(
      reportsOf(
          R"(      %p = llvm.getelementptr %y[%n] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
      %v = llvm.load %p : !llvm.ptr<1> -> i32
      llvm.store %v, %y : i32, !llvm.ptr<1>)",
          4),
      std::string(kBlock) +
          "thread 0, test.mlir:6:12 (load): uninitialized: reads byte 16 of "
          "'result', which was never written\n");
}

/// Each thread reads what the one whose number differs by `mask` wrote.
std::string exchange(const char *between, const char *mask) {
  return std::string(R"(      %mask = arith.constant )") + mask + R"( : i32
      %all = arith.constant -1 : i32
      %p = llvm.getelementptr %s[%t] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
      llvm.store %n, %p : i32, !llvm.ptr<3>
      )" +
         between + R"(
      %other = arith.xori %t, %mask : i32
      %q = llvm.getelementptr %s[%other] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
      %v = llvm.load %q : !llvm.ptr<3> -> i32
      %r = llvm.getelementptr %y[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
      llvm.store %v, %r : i32, !llvm.ptr<1>)";
}

/// The lane that comes last to a barrier goes on first: 31 reads before 63
/// writes, and 63 after 31 has written.
TEST(Faults, RaceOfTwoWarps) {
  EXPECT_EQ(reportsOf(exchange("nvvm.barrier", "32"), 1), "");
  std::string block = kBlock;
  EXPECT_EQ(
      reportsOf(exchange("nvvm.bar.warp.sync %all : i32", "32"), 1),
      block +
          "thread 31, test.mlir:12:12 (load): uninitialized: reads byte 252 of "
          "shared memory, which no thread of the block wrote\n" +
          block +
          "thread 63, test.mlir:8:7 (store): race: writes byte 252 of shared "
          "memory, without a barrier after the read of thread 31 at "
          "test.mlir:12:12 (load)\n" +
          block +
          "thread 63, test.mlir:12:12 (load): race: reads byte 124 of shared "
          "memory, without a barrier after the write of thread 31 at "
          "test.mlir:8:7 (store)\n");
}

TEST(Faults, RaceInAWarp) {
  EXPECT_EQ(reportsOf(exchange("nvvm.bar.warp.sync %all : i32", "1"), 1), "");
  std::string reports = reportsOf(exchange("", "1"), 1);
  EXPECT_NE(
      reports.find(std::string(kBlock) +
                   "thread 1, test.mlir:12:12 (load): race: reads byte 0 of "
                   "shared memory, without a barrier after the write of thread "
                   "0 at test.mlir:8:7 (store)\n"),
      std::string::npos)
      << reports;
}

/// Two threads write different values to one place.
TEST(Faults, RaceOfTwoWrites) {
  auto write = [](const char *value) {
    return std::string(
               R"(      %first = llvm.getelementptr %s[%n] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
      llvm.store )") +
           value + R"(, %first : i32, !llvm.ptr<3>
      nvvm.barrier
      %v = llvm.load %s : !llvm.ptr<3> -> i32
      llvm.store %v, %y : i32, !llvm.ptr<1>)";
  };
  EXPECT_EQ(reportsOf(write("%n"), 0), "");
  EXPECT_EQ(reportsOf(write("%t"), 0),
            std::string(kBlock) +
                "thread 1, test.mlir:6:7 (store): race: writes byte 0 of "
                "shared memory, without a barrier after the write of thread 0 "
                "at test.mlir:6:7 (store)\n");
}

TEST(Faults, DivergentBarrier) {
  const char *barrier = R"(      %goes = arith.cmpi slt, %t, %n : i32
      scf.if %goes {
        nvvm.barrier
      })";
  EXPECT_EQ(reportsOf(barrier, 64), "");
  EXPECT_EQ(reportsOf(barrier, 40),
            std::string(kBlock) +
                "thread 32, test.mlir:7:9 (barrier): divergent barrier: waits "
                "for ever: thread 40 of the same warp has ended\n");
}

TEST(Faults, Deadlock) {
  const char *barrier = R"(      %goes = arith.cmpi slt, %t, %n : i32
      scf.if %goes {
        nvvm.barrier
      })";
  EXPECT_EQ(reportsOf(barrier, 64), "");
  EXPECT_EQ(reportsOf(barrier, 32),
            std::string(kBlock) +
                "thread 0, test.mlir:7:9 (barrier): deadlock: 32 of 64 threads "
                "wait for ever; thread 32 has ended\n");
}

TEST(Faults, CopyThatWasNotWaitedFor) {
  std::string copy = R"(      %c4 = arith.constant 4 : i32
      %p = llvm.getelementptr %x[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
      %q = llvm.getelementptr %s[%t] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
      nvvm.cp.async.shared.global %q, %p, 4, cache = ca, %c4 : !llvm.ptr<3>, !llvm.ptr<1>, i32
      nvvm.cp.async.commit.group
      nvvm.cp.async.wait.group )",
              read = R"(
      %v = llvm.load %q : !llvm.ptr<3> -> f32
      %r = llvm.getelementptr %y[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
      llvm.store %v, %r : f32, !llvm.ptr<1>
      nvvm.cp.async.wait.group 0)";
  EXPECT_EQ(reportsOf(copy + "0" + read, 0), "");
  EXPECT_EQ(reportsOf(copy + "1" + read, 0),
            std::string(kBlock) +
                "thread 0, test.mlir:11:12 (load): asynchronous copy: accesses "
                "byte 0 of shared memory, the target of a copy that was not "
                "waited for, by thread 0 at test.mlir:8:7 (cp.async)\n");
}

/// The example of runtime/device/README.md.
TEST(Faults, TextOfTheManual) {
  auto gpu = GpuKernels::parseFile(std::string(SAMPLES) + "center-rows.mlir");
  ASSERT_TRUE(*gpu) << gpu->takeDiagnostics();
  auto kernels = gpu->compile({/*checks=*/true, /*mayLeaveOut=*/true});
  ASSERT_TRUE(kernels) << gpu->takeDiagnostics();
  kernels->leaveOut({GpuSynchronization::Barrier, 0});
  const RotaSimtKernel *kernel = kernels->find("center_rows");
  ASSERT_TRUE(kernel);
  SampleOutcome outcome = run(sampleKernels()[1].make({1, 1, 1}), *kernel);
  ASSERT_EQ(outcome.reports.size(), 3u);
  EXPECT_EQ(outcome.reports[2],
            "kernel 'center_rows', block (0, 0, 0), thread 1, "
            "center-rows.mlir:52:15 (load): race: reads byte 0 of shared "
            "memory, without a barrier after the write of thread 0 at "
            "center-rows.mlir:49:9 (store)");
}

} // namespace
} // namespace rota::test
