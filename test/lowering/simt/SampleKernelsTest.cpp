// SPDX-License-Identifier: Apache-2.0
//
// Emulated kernels agree with f64 references, have the same bits whatever the
// order of threads and with or without checks, and need all that their threads
// wait for.
#include "test/lowering/simt/SampleKernels.h"
#include "test/lowering/simt/EmulatedKernels.h"

#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/Triple.h"
#include <gtest/gtest.h>
#include <thread>

using rota::lowering::GpuSynchronization;

namespace rota::test {
namespace {

class SampleKernels : public testing::TestWithParam<SampleKernel> {
protected:
  SampleKernels()
      : gpu(GpuKernels::parseFile(std::string(SAMPLES) + GetParam().file)) {}

  void SetUp() override { ASSERT_TRUE(*gpu) << gpu->takeDiagnostics(); }

  std::unique_ptr<EmulatedKernels>
  compile(const lowering::HostKernelOptions &options = {},
          const std::string &processor = "native") {
    auto kernels = gpu->compile(options, processor);
    EXPECT_TRUE(kernels) << gpu->takeDiagnostics();
    return kernels;
  }

  std::unique_ptr<GpuKernels> gpu;
};

std::string join(const std::vector<std::string> &lines) {
  std::string text;
  for (const std::string &line : lines)
    text += line + "\n";
  return text;
}

/// Pieces on three threads, the last ones first.
void runOnThreads(int64_t pieces, const std::function<void(int64_t)> &body) {
  std::vector<std::thread> threads;
  for (int64_t t = 0; t < 3; ++t)
    threads.emplace_back([&, t] {
      for (int64_t piece = pieces - 1 - t; piece >= 0; piece -= 3)
        body(piece);
    });
  for (std::thread &thread : threads)
    thread.join();
}

TEST_P(SampleKernels, AgreeWithReferences) {
  auto kernels = compile();
  ASSERT_TRUE(kernels);
  const RotaSimtKernel *kernel = kernels->find(GetParam().name);
  ASSERT_TRUE(kernel);
  for (auto shape : GetParam().shapes) {
    SampleCall call = GetParam().make(shape);
    SampleOutcome outcome = run(call, *kernel);
    EXPECT_EQ(join(outcome.reports), "");
    EXPECT_LE(call.error(outcome.result.data()), 1)
        << shape[0] << " x " << shape[1] << " x " << shape[2];
  }
}

TEST_P(SampleKernels, HaveTheSameBitsInAllOrders) {
  auto checked = compile();
  auto fast = compile({/*checks=*/false});
  ASSERT_TRUE(checked && fast);
  const RotaSimtKernel *kernel = checked->find(GetParam().name);
  const RotaSimtKernel *fastKernel = fast->find(GetParam().name);
  ASSERT_TRUE(kernel && fastKernel);
  for (auto shape : GetParam().shapes) {
    SampleCall call = GetParam().make(shape);
    SampleOutcome expected = run(call, *kernel);
    auto expectSame = [&](const SampleOutcome &outcome) {
      EXPECT_EQ(join(outcome.reports), "");
      EXPECT_TRUE(outcome.result == expected.result);
    };
    for (uint64_t seed : {0, 1, 2, 3, 4})
      expectSame(run(call, *kernel, seed));
    expectSame(run(call, *kernel, 5, runOnThreads));
    expectSame(run(call, *fastKernel));
    expectSame(run(call, *fastKernel, 6, runOnThreads));
  }
}

/// Vector registers, fused operations and conversions of the host are none of
/// the kernel's business.
TEST_P(SampleKernels, HaveTheSameBitsOnAllProcessors) {
  if (!llvm::Triple(llvm::sys::getDefaultTargetTriple()).isX86())
    GTEST_SKIP() << "names of x86 processors";
  auto native = compile({/*checks=*/false});
  auto least = compile({/*checks=*/false}, "x86-64");
  ASSERT_TRUE(native && least);
  const RotaSimtKernel *nativeKernel = native->find(GetParam().name);
  const RotaSimtKernel *leastKernel = least->find(GetParam().name);
  ASSERT_TRUE(nativeKernel && leastKernel);
  for (auto shape : GetParam().shapes) {
    SampleCall call = GetParam().make(shape);
    EXPECT_TRUE(run(call, *nativeKernel).result ==
                run(call, *leastKernel).result);
  }
}

/// Whether a run of any shape, in some order, has a report.
bool isReported(const SampleKernel &sample, const RotaSimtKernel &kernel) {
  for (auto shape : sample.shapes)
    for (std::optional<uint64_t> seed : {std::optional<uint64_t>(), {1}, {2}})
      if (!run(sample.make(shape), kernel, seed).reports.empty())
        return true;
  return false;
}

TEST_P(SampleKernels, NeedAllTheirSynchronizations) {
  unsigned all = 0;
  auto kernels = compile({/*checks=*/true, /*mayLeaveOut=*/true});
  ASSERT_TRUE(kernels);
  const RotaSimtKernel *kernel = kernels->find(GetParam().name);
  ASSERT_TRUE(kernel);
  EXPECT_FALSE(isReported(GetParam(), *kernel));
  for (auto kind :
       {GpuSynchronization::Barrier, GpuSynchronization::WarpBarrier,
        GpuSynchronization::CopyWait}) {
    unsigned count = lowering::countSynchronizations(gpu->get(), kind);
    all += count;
    for (unsigned number = 0; number < count; ++number) {
      kernels->leaveOut({kind, number});
      EXPECT_TRUE(isReported(GetParam(), *kernel))
          << "kind " << static_cast<int>(kind) << ", number " << number;
    }
  }
  EXPECT_GT(all, 0u);
}

INSTANTIATE_TEST_SUITE_P(All, SampleKernels, testing::ValuesIn(sampleKernels()),
                         [](const testing::TestParamInfo<SampleKernel> &info) {
                           return std::string(info.param.name);
                         });

} // namespace
} // namespace rota::test
