// SPDX-License-Identifier: Apache-2.0
//
// The emulation of a GPU's instructions, and the error of those without one.
#include "test/lowering/simt/EmulatedKernels.h"
#include "test/lowering/simt/SampleKernels.h"

#include "lowering/cpu/Object.h"

#include "llvm/Target/TargetMachine.h"
#include <bit>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>

namespace rota::test {
namespace {

/// A kernel of those lines with pointers %x and %y, thread %t, and an address
/// %p of the thread's word in %x and %q in %y.
std::unique_ptr<GpuKernels> parseKernel(const std::string &lines) {
  return GpuKernels::parse(R"(gpu.module @kernels {
    gpu.func @k(%x: !llvm.ptr<1>, %y: !llvm.ptr<1>) kernel {
      %t = nvvm.read.ptx.sreg.tid.x : i32
      %p = llvm.getelementptr %x[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
      %q = llvm.getelementptr %y[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
)" + lines + R"(
      gpu.return
    }
  })");
}

/// One thread for each word of the input, in one block, with and without
/// checks; a word of result for each.
std::vector<uint32_t> results(const std::string &lines,
                              const std::vector<uint32_t> &input) {
  auto gpu = parseKernel(lines);
  EXPECT_TRUE(*gpu) << gpu->takeDiagnostics();
  std::vector<uint32_t> words[2];
  if (!*gpu)
    return {};
  SampleCall call{{1},
                  {static_cast<uint32_t>(input.size())},
                  0,
                  {std::vector<char>(4 * input.size())},
                  4 * input.size(),
                  {},
                  nullptr};
  std::memcpy(call.inputs[0].data(), input.data(), 4 * input.size());
  for (bool checks : {false, true}) {
    auto kernels = gpu->compile({checks, {}});
    EXPECT_TRUE(kernels) << gpu->takeDiagnostics();
    const RotaSimtKernel *kernel = kernels ? kernels->find("k") : nullptr;
    if (!kernel)
      return {};
    SampleOutcome outcome = run(call, *kernel);
    for (const std::string &report : outcome.reports)
      ADD_FAILURE() << report;
    words[checks].resize(input.size());
    std::memcpy(words[checks].data(), outcome.result.data(), 4 * input.size());
  }
  EXPECT_EQ(words[0], words[1]);
  return words[0];
}

/// The error of a kernel that has no emulation, with or without checks.
std::string errorOf(const std::string &lines) {
  auto gpu = parseKernel(lines);
  EXPECT_TRUE(*gpu) << gpu->takeDiagnostics();
  if (!*gpu)
    return "";
  EXPECT_FALSE(gpu->compile({/*checks=*/false}));
  std::string error = gpu->takeDiagnostics();
  EXPECT_FALSE(gpu->compile());
  EXPECT_EQ(gpu->takeDiagnostics(), error);
  return error;
}

TEST(Translation, UnknownInstructionsAreErrors) {
  EXPECT_EQ(errorOf(R"(      %c = nvvm.read.ptx.sreg.clock : i32
      llvm.store %c, %q : i32, !llvm.ptr<1>)"),
            "expected instructions that the emulator knows, got "
            "'llvm.nvvm.read.ptx.sreg.clock' in 'k' at line 6\n");
  EXPECT_EQ(
      errorOf(
          R"(      %c = llvm.inline_asm has_side_effects "mov.u32 $0, 1;", "=r" : () -> i32
      llvm.store %c, %q : i32, !llvm.ptr<1>)"),
      "expected instructions that the emulator knows, got 'inline "
      "assembly' in 'k' at line 6\n");
  EXPECT_EQ(
      errorOf(
          R"(      %c = llvm.atomicrmw add %q, %t monotonic : !llvm.ptr<1>, i32)"),
      "expected instructions that the emulator knows, got 'atomicrmw' "
      "in 'k' at line 6\n");
  EXPECT_EQ(
      errorOf(
          R"(      %c = llvm.load %p atomic monotonic {alignment = 4 : i64} : !llvm.ptr<1> -> i32
      llvm.store %c, %q : i32, !llvm.ptr<1>)"),
      "expected instructions that the emulator knows, got 'atomic load' "
      "in 'k' at line 6\n");
  EXPECT_EQ(errorOf(R"(      %v = llvm.load %p : !llvm.ptr<1> -> bf16
      %r = llvm.call_intrinsic "llvm.fma.bf16"(%v, %v, %v) : (bf16, bf16, bf16) -> bf16
      llvm.store %r, %q : bf16, !llvm.ptr<1>)"),
            "expected instructions that the emulator knows, got "
            "'llvm.fma.bf16' in 'k' at line 7\n");
}

/// Threads have small stacks.
TEST(Translation, LocalMemoryHasABound) {
  auto array = [](const char *count) {
    return std::string(R"(      %count = llvm.load %p : !llvm.ptr<1> -> i32
      %fixed = arith.constant )") +
           count + R"( : i32
      %local = llvm.alloca %fixed x i32 : (i32) -> !llvm.ptr
      %slot = llvm.getelementptr %local[%count] : (!llvm.ptr, i32) -> !llvm.ptr, i32
      llvm.store volatile %t, %slot : i32, !llvm.ptr
      %w = llvm.load volatile %local : !llvm.ptr -> i32
      llvm.store %w, %q : i32, !llvm.ptr<1>)";
  };
  EXPECT_EQ(results(array("32000"), {0}), std::vector<uint32_t>{0});
  EXPECT_EQ(errorOf(array("32769")),
            "expected at most 131072 bytes of variables in a thread, got "
            "131076 in 'k'\n");
}

/// The bits of rounding to nearest even; NaN is 0x7FFF.
TEST(Translation, RoundsToBf16) {
  std::vector<uint32_t> got = results(
      R"(      %v = llvm.load %p : !llvm.ptr<1> -> f32
      %h = arith.truncf %v : f32 to bf16
      %b = arith.bitcast %h : bf16 to i16
      %w = arith.extui %b : i16 to i32
      llvm.store %w, %q : i32, !llvm.ptr<1>)",
      {0x3F800000, 0x3F808000, 0x3F818000, 0x3F808001, 0x3F807FFF, 0xBF818000,
       0x7F800000, 0xFF800000, 0x7F7FFFFF, 0x7FC00001, 0xFF800001, 0x00000001,
       0x00008000, 0x00018000, 0x80000000, 0x00408000});
  EXPECT_EQ(got, (std::vector<uint32_t>{0x3F80, 0x3F80, 0x3F82, 0x3F81, 0x3F80,
                                        0xBF82, 0x7F80, 0xFF80, 0x7F80, 0x7FFF,
                                        0x7FFF, 0x0000, 0x0000, 0x0002, 0x8000,
                                        0x0040}));
}

uint32_t bf16Of(float number) {
  uint32_t bits = std::bit_cast<uint32_t>(number);
  return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16;
}

float floatOf(uint32_t half) { return std::bit_cast<float>(half << 16); }

/// Arithmetic on bf16 rounds once. Vectors too.
TEST(Translation, ComputesWithBf16) {
  std::vector<uint32_t> input;
  for (uint32_t i = 0; i < 64; ++i) // two bf16 in a word
    input.push_back(bf16Of(0.37f * i - 9) | bf16Of(1.7f + 0.11f * i) << 16);
  std::vector<uint32_t> got = results(
      R"(      %v = llvm.load %p : !llvm.ptr<1> -> vector<2xbf16>
      %a = vector.extract %v[0] : bf16 from vector<2xbf16>
      %b = vector.extract %v[1] : bf16 from vector<2xbf16>
      %sum = arith.addf %a, %b : bf16
      %product = arith.mulf %a, %b : bf16
      %pair = vector.from_elements %sum, %product : vector<2xbf16>
      %negative = arith.negf %pair : vector<2xbf16>
      %isLess = arith.cmpf olt, %a, %b : bf16
      %r = arith.select %isLess, %negative, %pair : vector<2xbf16>
      llvm.store %r, %q : vector<2xbf16>, !llvm.ptr<1>)",
      input);
  ASSERT_EQ(got.size(), 64u);
  for (uint32_t i = 0; i < 64; ++i) {
    float a = floatOf(input[i] & 0xFFFF), b = floatOf(input[i] >> 16);
    float sign = a < b ? -1 : 1;
    EXPECT_EQ(got[i], bf16Of(sign * (a + b)) | bf16Of(sign * (a * b)) << 16)
        << a << " and " << b;
  }
}

/// Bits that are moved stay, those of signaling NaNs too: in registers from
/// block to block, in vectors and local memory.
TEST(Translation, MovesBf16) {
  std::vector<uint32_t> got = results(
      R"(      %v = llvm.load %p : !llvm.ptr<1> -> vector<2xbf16>
      %c0 = arith.constant 0 : i32
      %c1 = arith.constant 1 : i32
      %none = arith.constant dense<[1.0, -2.0]> : vector<2xbf16>
      %two = nvvm.read.ptx.sreg.ntid.x : i32
      %three = arith.addi %two, %c1 : i32
      %moved = scf.for %i = %c0 to %three step %c1 iter_args(%w = %v) -> (vector<2xbf16>) : i32 {
        nvvm.barrier
        %swapped = vector.shuffle %w, %none [1, 0] : vector<2xbf16>, vector<2xbf16>
        scf.yield %swapped : vector<2xbf16>
      }
      nvvm.barrier
      %isFirst = arith.cmpi eq, %t, %c0 : i32
      %r = arith.select %isFirst, %none, %moved : vector<2xbf16>
      llvm.store %r, %q : vector<2xbf16>, !llvm.ptr<1>)",
      {0, 0x7FA1FF83});
  EXPECT_EQ(got, (std::vector<uint32_t>{0xC0003F80, 0xFF837FA1}));
}

/// No fast-math flag changes a bit: the host divides and contracts nothing.
TEST(Translation, DropsFastMath) {
  std::vector<uint32_t> input;
  for (int i = 0; i < 64; ++i)
    input.push_back(std::bit_cast<uint32_t>(1.1f + 0.37f * i));
  std::vector<uint32_t> got = results(
      R"(      %v = llvm.load %p : !llvm.ptr<1> -> f32
      %three = arith.constant 3.0 : f32
      %m = arith.mulf %v, %v fastmath<fast> : f32
      %a = arith.addf %m, %v fastmath<fast> : f32
      %d = arith.divf %three, %a fastmath<fast> : f32
      llvm.store %d, %q : f32, !llvm.ptr<1>)",
      input);
  ASSERT_EQ(got.size(), 64u);
  unsigned equal = 0;
  for (int i = 0; i < 64; ++i) {
    volatile float v = std::bit_cast<float>(input[i]);
    volatile float product = v * v;
    volatile float sum = product + v;
    volatile float factored = v + 1; // O3 may have made v * (v + 1) of it
    volatile float other = factored * v;
    equal += std::bit_cast<float>(got[i]) == 3.0f / sum ||
             std::bit_cast<float>(got[i]) == 3.0f / other;
  }
  EXPECT_EQ(equal, 64u);
}

TEST(Translation, Approximations) {
  std::vector<uint32_t> input;
  for (int i = 1; i <= 32; ++i)
    input.push_back(std::bit_cast<uint32_t>(0.3f * i));
  auto check = [&](const char *intrinsic, float (*reference)(float)) {
    std::vector<uint32_t> got =
        results(std::string(R"(      %v = llvm.load %p : !llvm.ptr<1> -> f32
      %r = llvm.call_intrinsic "llvm.nvvm.)") +
                    intrinsic + R"("(%v) : (f32) -> f32
      llvm.store %r, %q : f32, !llvm.ptr<1>)",
                input);
    ASSERT_EQ(got.size(), 32u) << intrinsic;
    for (int i = 0; i < 32; ++i) {
      float expected = reference(std::bit_cast<float>(input[i]));
      EXPECT_NEAR(std::bit_cast<float>(got[i]), expected,
                  1e-6f * std::abs(expected) + 1e-7f)
          << intrinsic;
    }
  };
  check("ex2.approx.ftz.f32", [](float x) { return std::exp2(x); });
  check("ex2.approx.f32", [](float x) { return std::exp2(x); });
  check("lg2.approx.f", [](float x) { return std::log2(x); });
  check("lg2.approx.ftz.f", [](float x) { return std::log2(x); });
  check("sqrt.approx.f", [](float x) { return std::sqrt(x); });
  check("rsqrt.approx.f", [](float x) { return 1 / std::sqrt(x); });
  check("rsqrt.approx.ftz.f", [](float x) { return 1 / std::sqrt(x); });
  check("rcp.approx.ftz.f", [](float x) { return 1 / x; });
}

/// Lanes 0 to 31 vote on "input word is not 0".
TEST(Translation, Votes) {
  auto vote = [](const char *lines, uint32_t ones) {
    std::vector<uint32_t> input;
    for (uint32_t lane = 0; lane < 32; ++lane)
      input.push_back(ones >> lane & 1);
    return results(std::string(R"(      %v = llvm.load %p : !llvm.ptr<1> -> i32
      %zero = arith.constant 0 : i32
      %all = arith.constant -1 : i32
      %yes = arith.cmpi ne, %v, %zero : i32
)") + lines + R"(
      llvm.store %w, %q : i32, !llvm.ptr<1>)",
                   input)[0];
  };
  const char *ballot = "      %w = nvvm.vote.sync ballot %all, %yes -> i32";
  EXPECT_EQ(vote(ballot, 0x80000005), 0x80000005u);
  const char *any = R"(      %r = nvvm.vote.sync any %all, %yes -> i1
      %w = arith.extui %r : i1 to i32)";
  EXPECT_EQ(vote(any, 0), 0u);
  EXPECT_EQ(vote(any, 8), 1u);
}

TEST(Translation, Shuffles) {
  std::vector<uint32_t> input;
  for (uint32_t lane = 0; lane < 32; ++lane)
    input.push_back(100 + lane);
  auto shuffle = [](const char *kind, const char *clamp) {
    return std::string(R"(      %v = llvm.load %p : !llvm.ptr<1> -> i32
      %all = arith.constant -1 : i32
      %three = arith.constant 3 : i32
      %clamp = arith.constant )") +
           clamp + " : i32\n      %r = nvvm.shfl.sync " + kind +
           R"( %all, %v, %three, %clamp : i32 -> i32
      llvm.store %r, %q : i32, !llvm.ptr<1>)";
  };
  std::vector<uint32_t> index = results(shuffle("idx", "31"), input);
  std::vector<uint32_t> butterfly = results(shuffle("bfly", "31"), input);
  for (uint32_t lane = 0; lane < 32; ++lane) {
    EXPECT_EQ(index[lane], 103u);
    EXPECT_EQ(butterfly[lane], 100 + (lane ^ 3));
  }
  EXPECT_NE(errorOf(shuffle("idx", "7")).find("'llvm.nvvm.shfl.sync.idx.i32'"),
            std::string::npos)
      << "parts of a warp";
}

/// Lanes that a mask leaves out may lie outside of a buffer.
TEST(Translation, MaskedAccesses) {
  std::vector<uint32_t> got = results(
      R"(      %two = arith.constant 2 : i32
      %isLast = arith.cmpi eq, %t, %two : i32
      %true = arith.constant true
      %isInside = arith.xori %isLast, %true : i1
      %mask = vector.from_elements %true, %isInside : vector<2xi1>
      %none = arith.constant dense<7> : vector<2xi32>
      %v = llvm.intr.masked.load %p, %mask, %none {alignment = 4 : i32} : (!llvm.ptr<1>, vector<2xi1>, vector<2xi32>) -> vector<2xi32>
      %w = vector.reduction <add>, %v : vector<2xi32> into i32
      llvm.store %w, %q : i32, !llvm.ptr<1>)",
      {10, 20, 30});
  EXPECT_EQ(got, (std::vector<uint32_t>{30, 50, 37}));
}

/// Local arrays lie on the thread's stack, in whatever order threads run.
TEST(Translation, LocalMemory) {
  std::vector<uint32_t> got = results(
      R"(      %v = llvm.load %p : !llvm.ptr<1> -> i32
      %c0 = arith.constant 0 : i32
      %c1 = arith.constant 1 : i32
      %c4 = arith.constant 4 : i32
      %c3 = arith.constant 3 : i32
      %local = llvm.alloca %c4 x i32 : (i32) -> !llvm.ptr
      scf.for %i = %c0 to %c4 step %c1 : i32 {
        %s = arith.addi %v, %i : i32
        %slot = llvm.getelementptr %local[%i] : (!llvm.ptr, i32) -> !llvm.ptr, i32
        llvm.store %s, %slot : i32, !llvm.ptr
      }
      nvvm.barrier
      %mine = arith.andi %t, %c3 : i32
      %slot = llvm.getelementptr %local[%mine] : (!llvm.ptr, i32) -> !llvm.ptr, i32
      %w = llvm.load %slot : !llvm.ptr -> i32
      llvm.store %w, %q : i32, !llvm.ptr<1>)",
      {10, 20, 30, 40, 50});
  EXPECT_EQ(got, (std::vector<uint32_t>{10, 21, 32, 43, 50}));
}

/// A kernel has its own shared memory, and behind it the memory whose size a
/// launch gives.
TEST(Translation, SharedMemoryOfEachKernel) {
  auto gpu = GpuKernels::parse(R"(gpu.module @kernels {
    llvm.mlir.global external @more() {addr_space = 3 : i32, alignment = 64 : i64} : !llvm.array<0 x i8>
    llvm.mlir.global internal @big() {addr_space = 3 : i32, alignment = 4 : i64} : !llvm.array<100 x i32>
    llvm.mlir.global internal @small() {addr_space = 3 : i32, alignment = 4 : i64} : !llvm.array<3 x i32>
    gpu.func @first(%n: i32) kernel {
      %big = llvm.mlir.addressof @big : !llvm.ptr<3>
      %more = llvm.mlir.addressof @more : !llvm.ptr<3>
      %p = llvm.getelementptr %big[%n] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
      %q = llvm.getelementptr %more[%n] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
      llvm.store %n, %p : i32, !llvm.ptr<3>
      llvm.store %n, %q : i32, !llvm.ptr<3>
      nvvm.barrier
      %v = llvm.load %big : !llvm.ptr<3> -> i32
      llvm.store %v, %more : i32, !llvm.ptr<3>
      gpu.return
    }
    gpu.func @second(%n: i32, %y: !llvm.ptr<1>) kernel {
      %small = llvm.mlir.addressof @small : !llvm.ptr<3>
      %p = llvm.getelementptr %small[%n] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
      llvm.store %n, %p : i32, !llvm.ptr<3>
      nvvm.barrier
      %v = llvm.load %small : !llvm.ptr<3> -> i32
      llvm.store %v, %y : i32, !llvm.ptr<1>
      gpu.return
    }
  })");
  ASSERT_TRUE(*gpu) << gpu->takeDiagnostics();
  auto kernels = gpu->compile();
  ASSERT_TRUE(kernels) << gpu->takeDiagnostics();
  EXPECT_EQ(kernels->find("first")->sharedBytes, 448); // 400, aligned to 64
  EXPECT_EQ(kernels->find("second")->sharedBytes, 12);
  const RotaSimtKernel *second = kernels->find("second");
  EXPECT_EQ(std::vector(second->argumentBytes,
                        second->argumentBytes + second->argumentCount),
            (std::vector<int32_t>{4, 8}));
  int32_t n = 0;
  void *arguments[] = {&n};
  simt::Emulator emulator;
  simt::Launch launch;
  launch.arguments = arguments;
  launch.sharedBytes = 4;
  EXPECT_TRUE(emulator.launch(*kernels->find("first"), launch).empty());
  n = 1;
  std::vector<std::string> reports =
      emulator.launch(*kernels->find("first"), launch);
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_NE(reports[0].find("4 bytes at byte 452 of shared memory, which has "
                            "452 bytes"),
            std::string::npos)
      << reports[0];
}

TEST(Translation, CodeWithoutChecksCallsNone) {
  auto gpu = parseKernel("      llvm.store %t, %q : i32, !llvm.ptr<1>");
  ASSERT_TRUE(*gpu) << gpu->takeDiagnostics();
  mlir::MLIRContext context;
  mlir::Location loc = mlir::UnknownLoc::get(&context);
  auto host = lowering::createTargetMachine(loc, {});
  ASSERT_TRUE(succeeded(host));
  for (bool checks : {false, true}) {
    auto module =
        lowering::makeHostKernels(loc, gpu->get(), **host, {checks, {}});
    ASSERT_TRUE(succeeded(module));
    EXPECT_EQ((*module)->getFunction("rotaSimtWrite") != nullptr, checks);
    EXPECT_TRUE((*module)->getFunction("k"));
    EXPECT_EQ((*module)->getTargetTriple(), (*host)->getTargetTriple());
  }
  EXPECT_EQ(gpu->get().getTargetTriple().str(), "nvptx64-nvidia-cuda");
}

} // namespace
} // namespace rota::test
