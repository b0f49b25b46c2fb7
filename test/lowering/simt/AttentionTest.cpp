// SPDX-License-Identifier: Apache-2.0
//
// The GPU's attention kernels on the emulator, with all checks, against a plain
// loop in f64: the same bits in any order of threads, and every barrier needed.
#include "lowering/gpu/GpuEmitters.h"
#include "runtime/device/simt/Simt.h"
#include "test/lowering/kernels/AttentionTesting.h"
#include "test/lowering/simt/EmulatedKernels.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/raw_ostream.h"

#include <set>

using namespace rota::testing;
using rota::lowering::GpuSynchronization;
using rota::lowering::KernelArgument;
using rota::test::EmulatedKernels;
using rota::test::GpuKernels;
namespace lowering = rota::lowering;
namespace simt = rota::simt;

namespace {

/// One op's kernels, and the memory that they use.
class EmulatedOp {
public:
  explicit EmulatedOp(const std::string &source)
      : library(&context, lowering::gpuTarget()) {
    context.loadDialect<mlir::func::FuncDialect, mlir::rota::RotaDialect>();
    auto module = mlir::parseSourceString<mlir::ModuleOp>(source, &context);
    auto function = *module->getOps<mlir::func::FuncOp>().begin();
    mlir::Operation *op = &function.getBody().front().front();
    operands = op->getNumOperands();
    llvm::SmallVector<bool> accumulate(op->getNumResults(), false);
    auto planned = lowering::planKernels(op, accumulate, library);
    EXPECT_TRUE(succeeded(planned));
    plan = *planned;
    std::string text;
    llvm::raw_string_ostream stream(text);
    library.getModule().print(stream);
    gpu = GpuKernels::parse(text);
    EXPECT_TRUE(*gpu) << gpu->takeDiagnostics();
  }

  GpuKernels &getKernels() { return *gpu; }

  void compile(const lowering::HostKernelOptions &options = {}) {
    kernels = gpu->compile(options);
    ASSERT_TRUE(kernels) << gpu->takeDiagnostics();
  }

  /// Runs all kernels on the operands and then the results; the reports.
  std::vector<std::string> run(const std::vector<Buffer *> &buffers,
                               std::optional<uint64_t> seed = std::nullopt) {
    simt::Emulator emulator;
    for (auto [i, buffer] : llvm::enumerate(buffers))
      emulator.addBuffer("buffer " + std::to_string(i), buffer->data(),
                         buffer->dataBytes(), i < operands);
    std::vector<Buffer> temporaries;
    for (int64_t bytes : plan.temporaries)
      temporaries.emplace_back("f32", bytes / 4);
    for (Buffer &buffer : temporaries)
      emulator.addBuffer("temporary", buffer.data(), buffer.dataBytes(), false);
    std::vector<std::string> reports;
    for (const lowering::KernelCall &call : plan.calls) {
      std::vector<void *> pointers, arguments;
      for (KernelArgument argument : call.arguments)
        pointers.push_back(
            argument.kind == KernelArgument::Kind::Temporary
                ? temporaries[argument.index].data()
                : buffers[argument.kind == KernelArgument::Kind::Result
                              ? operands + argument.index
                              : argument.index]
                      ->data());
      for (void *&pointer : pointers)
        arguments.push_back(&pointer);
      lowering::LaunchShape shape = library.getLaunchShape(call.symbol);
      simt::Launch launch{{uint32_t(shape.grid[0])}, {uint32_t(shape.block)}};
      launch.sharedBytes = shape.sharedBytes;
      launch.arguments = arguments.data();
      launch.seed = seed;
      const RotaSimtKernel *kernel = kernels->find(call.symbol);
      if (!kernel)
        return {"expected a kernel"};
      llvm::append_range(reports, emulator.launch(*kernel, launch));
    }
    return reports;
  }

private:
  mlir::MLIRContext context;
  lowering::KernelLibrary library;
  lowering::KernelPlan plan;
  std::unique_ptr<GpuKernels> gpu;
  std::unique_ptr<EmulatedKernels> kernels;
  size_t operands = 0;
};

/// Operands and results of attention and of its derivative.
struct Tensors {
  Tensors(const AttentionSizes &s, const std::string &type)
      : q(Buffer::random(type, s.queries(), 1)),
        k(Buffer::random(type, s.keys(), 2)),
        v(Buffer::random(type, s.keys(), 3)),
        dout(Buffer::random(type, s.queries(), 4)), out(type, s.queries()),
        lse("f32", s.batch * s.heads * s.sequence), dq(type, s.queries()),
        dk(type, s.keys()), dv(type, s.keys()) {}

  std::vector<Buffer *> forward() { return {&q, &k, &v, &out, &lse}; }
  std::vector<Buffer *> backward() {
    return {&dout, &q, &k, &v, &out, &lse, &dq, &dk, &dv};
  }

  Buffer q, k, v, dout, out, lse, dq, dk, dv;
};

std::string join(const std::vector<std::string> &lines) {
  std::string text;
  for (const std::string &line : lines)
    text += line + "\n";
  return text;
}

/// [sizes, element type]
class GpuAttention
    : public testing::TestWithParam<std::tuple<AttentionSizes, const char *>> {
};

TEST_P(GpuAttention, AgreesWithPlainLoopInAllOrders) {
  auto [s, type] = GetParam();
  EmulatedOp forward(forwardSource(s, type));
  EmulatedOp backward(backwardSource(s, type));
  forward.compile();
  backward.compile();
  Tensors tensors(s, type);
  ASSERT_EQ(join(forward.run(tensors.forward())), "");
  AttentionReference expected(s, tensors.q, tensors.k, tensors.v, tensors.dout);
  // Matrix instructions take weights that are rounded to bf16; the values that
  // they weigh are at most 1.
  bool onMatrices =
      std::string(type) == "bf16" && (s.size == 64 || s.size == 128);
  tensors.out.expectNear(expected.out, onMatrices ? 0x1p-9 : 5e-6, "output");
  tensors.lse.expectNear(expected.lse, 5e-6, "logsumexp");
  ASSERT_EQ(join(backward.run(tensors.backward())), "");
  // The rounded output enters all but the value's cotangent, through delta.
  double tolerance = std::string(type) == "bf16" ? 1e-2 : 1e-5;
  tensors.dq.expectNear(expected.dq, tolerance, "query cotangent");
  tensors.dk.expectNear(expected.dk, tolerance, "key cotangent");
  tensors.dv.expectNear(expected.dv, 1e-5, "value cotangent");

  for (uint64_t seed : {1, 2}) {
    Tensors again(s, type);
    ASSERT_EQ(join(forward.run(again.forward(), seed)), "");
    ASSERT_EQ(join(backward.run(again.backward(), seed)), "");
    EXPECT_EQ(again.out.raw(), tensors.out.raw());
    EXPECT_EQ(again.lse.raw(), tensors.lse.raw());
    EXPECT_EQ(again.dq.raw(), tensors.dq.raw());
    EXPECT_EQ(again.dk.raw(), tensors.dk.raw());
    EXPECT_EQ(again.dv.raw(), tensors.dv.raw());
  }
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
                                     AttentionSizes{1, 200, 3, 1, 128},
                                     AttentionSizes{1, 40, 1, 1, 256}),
                     testing::Values("f32", "bf16")),
    [](const auto &info) {
      return std::get<0>(info.param).name() + "_" + std::get<1>(info.param);
    });

/// Sources and buffers of an op.
struct TestedOp {
  std::string (*source)(const AttentionSizes &, const std::string &);
  std::vector<Buffer *> (Tensors::*buffers)();
};
constexpr TestedOp kForward = {forwardSource, &Tensors::forward};
constexpr TestedOp kBackward = {backwardSource, &Tensors::backward};

/// Each instruction of that kind in the op's kernels in turn is left out: at
/// some length there is a report.
void expectAllNeeded(const TestedOp &tested, int64_t size,
                     const std::string &type, GpuSynchronization kind) {
  std::set<unsigned> unneeded;
  for (int64_t length : {17, 200}) {
    AttentionSizes s = {1, length, length < 64 ? 2 : 1, 1, size};
    EmulatedOp op(tested.source(s, type));
    unsigned count = countSynchronizations(op.getKernels().get(), kind);
    EXPECT_GT(count, 0u);
    if (unneeded.empty())
      for (unsigned i = 0; i < count; ++i)
        unneeded.insert(i);
    for (unsigned i : std::set<unsigned>(unneeded)) {
      op.compile({/*checks=*/true, {{kind, i}}});
      Tensors tensors(s, type);
      if (!op.run((tensors.*tested.buffers)(), 3).empty())
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
        GpuSynchronization::CopyWait})
    expectAllNeeded(kForward, 64, "bf16", kind);
}

/// Scores of some thousands.
TEST(GpuAttentionScores, MayBeLarge) {
  for (auto [size, type] : {std::pair(8, "f32"), {64, "bf16"}}) {
    AttentionSizes s{1, 70, 1, 1, size};
    EmulatedOp forward(forwardSource(s, type));
    forward.compile();
    Tensors tensors(s, type);
    tensors.q = Buffer::random(type, s.queries(), 1, 90.0f, 100.0f);
    tensors.k = Buffer::random(type, s.keys(), 2, -100.0f, 100.0f);
    ASSERT_EQ(join(forward.run(tensors.forward())), "");
    for (int64_t i = 0; i < s.queries(); ++i)
      ASSERT_LE(std::abs(tensors.out[i]), 1.0) << i;
    for (int64_t i = 0; i < s.sequence; ++i)
      ASSERT_TRUE(std::isfinite(tensors.lse[i])) << i;
  }
}

} // namespace
