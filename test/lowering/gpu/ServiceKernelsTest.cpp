// SPDX-License-Identifier: Apache-2.0
//
// The kernels that the runtime launches by itself, on the emulator: the bits of
// the CPU's code with every grid, count, type and form of rows.
#include "lowering/gpu/ServiceKernels.h"
#include "runtime/collective/Blocks.h"
#include "runtime/device/cuda/ServiceKernels.h"
#include "runtime/device/simt/Simt.h"
#include "test/lowering/simt/EmulatedKernels.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <limits>
#include <random>

namespace rota::test {
namespace {

constexpr int64_t kCounts[] = {1, 3, 255, 256, 257, 100003};
constexpr unsigned kGrids[] = {1, 3};
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// Elements of `T`, the first of them `shift` elements behind a multiple of 64
/// bytes.
template <typename T> class Elements {
public:
  explicit Elements(int64_t count, int64_t shift = 0)
      : shift(shift), count(count),
        lines((count + shift) * sizeof(T) / 64 + 1) {}
  T *data() { return reinterpret_cast<T *>(lines.data()) + shift; }
  const T *data() const {
    return reinterpret_cast<const T *>(lines.data()) + shift;
  }
  T &operator[](int64_t i) { return data()[i]; }
  const T &operator[](int64_t i) const { return data()[i]; }
  int64_t size() const { return count; }

private:
  struct alignas(64) Line {
    char bytes[64];
  };
  int64_t shift, count;
  std::vector<Line> lines;
};

/// Rows of elements of which `count` are used.
struct Rows {
  int64_t length, stride;
  int64_t at(int64_t i) const { return i / length * stride + i % length; }
  int64_t extent(int64_t count) const { return at(count - 1) + 1; }
};

class ServiceKernels : public testing::Test {
protected:
  ServiceKernels() : gpu(GpuKernels::build(lowering::addServiceKernels)) {}

  void SetUp() override {
    ASSERT_TRUE(*gpu) << gpu->takeDiagnostics();
    kernels = gpu->compile();
    ASSERT_TRUE(kernels) << gpu->takeDiagnostics();
  }

  template <typename T> void know(const char *name, const Elements<T> &bytes) {
    emulator.addBuffer(name, bytes.data(), bytes.size() * sizeof(T));
  }

  /// Launches a kernel on the buffers that are known, and forgets them.
  template <typename... Arguments>
  std::vector<std::string> run(const char *name, unsigned blocks,
                               Arguments... arguments) {
    void *addresses[] = {&arguments...};
    simt::Launch launch;
    launch.grid = {blocks};
    launch.block = {cuda::kServiceThreads};
    launch.arguments = addresses;
    launch.seed = blocks;
    auto reports = emulator.launch(*kernels->find(name), launch);
    emulator.clearBuffers();
    return reports;
  }

  template <typename... Arguments>
  void expectRun(const char *name, unsigned blocks, Arguments... arguments) {
    for (const std::string &report : run(name, blocks, arguments...))
      ADD_FAILURE() << report;
  }

  float number() {
    return std::uniform_real_distribution<float>(-2, 2)(engine);
  }

  std::unique_ptr<GpuKernels> gpu;
  std::unique_ptr<EmulatedKernels> kernels;
  simt::Emulator emulator;
  std::mt19937 engine{5};
};

//===----------------------------------------------------------------------===//
// Sums of gradients, rounding of parameters
//===----------------------------------------------------------------------===//

TEST_F(ServiceKernels, Add) {
  for (int64_t count : kCounts)
    for (int64_t shift : {0, 1})
      for (unsigned blocks : kGrids) {
        SCOPED_TRACE(testing::Message() << count << " from " << shift);
        Elements<float> sum(count), terms(count, shift), expected(count);
        for (int64_t i = 0; i < count; ++i) {
          sum[i] = number(), terms[i] = number();
          expected[i] = sum[i] + terms[i];
        }
        know("sum", sum);
        know("terms", terms);
        expectRun(cuda::kAddKernel, blocks, sum.data(), terms.data(), count);
        EXPECT_EQ(std::memcmp(sum.data(), expected.data(), 4 * count), 0);
      }
}

/// To the nearest, ties to even; NaN as GPUs write it.
uint16_t roundToBf16(float value) {
  auto bits = std::bit_cast<uint32_t>(value);
  return std::isnan(value) ? 0x7FFF
                           : (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16;
}

TEST_F(ServiceKernels, Round) {
  const uint32_t cases[] = {0x3F808000, 0x3F818000, 0xBF808001, 0x7F7FFFFF,
                            0x7F800000, 0xFF800000, 0x7F800001, 0xFFC00000,
                            0x80000000, 0x00008000, 0x00018000};
  for (int64_t count : kCounts)
    for (int64_t shift : {0, 1})
      for (unsigned blocks : kGrids) {
        SCOPED_TRACE(testing::Message() << count << " from " << shift);
        Elements<uint16_t> rounded(count, shift), expected(count);
        Elements<float> values(count);
        for (int64_t i = 0; i < count; ++i) {
          values[i] = i % 3 == 0
                          ? std::bit_cast<float>(cases[i % std::size(cases)])
                          : number();
          expected[i] = roundToBf16(values[i]);
        }
        know("rounded", rounded);
        know("values", values);
        expectRun(cuda::kRoundKernel, blocks, rounded.data(), values.data(),
                  count);
        EXPECT_EQ(std::memcmp(rounded.data(), expected.data(), 2 * count), 0);
      }
}

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

/// One call of a kernel that combines.
struct Combination {
  int64_t count;
  Rows terms, out;
  int64_t shift; // of the first term, in elements
  int64_t termCount;
  cuda::CombineMode mode;
  bool inPlace; // on the last term
};

class Combine : public ServiceKernels {
protected:
  /// `type` and T are the same; bf16 are their bits.
  template <typename T> void check(ElementType type, const Combination &c) {
    SCOPED_TRACE(testing::Message()
                 << cuda::kCombineKernels[int(type)] << " of " << c.count
                 << ", rows of " << c.terms.length << " each " << c.terms.stride
                 << " to " << c.out.length << " each " << c.out.stride
                 << ", shift " << c.shift << ", terms " << c.termCount
                 << ", mode " << c.mode << ", in place " << c.inPlace);
    std::vector<Elements<T>> terms;
    for (int64_t t = 0; t < c.termCount; ++t)
      terms.push_back(random<T>(type, t == 0 ? c.shift : 0, c));
    auto initial = random<T>(type, 0, c);
    if (c.inPlace)
      initial = terms.back();
    Elements<T> expected = reference(type, c, terms, initial);
    for (unsigned blocks : kGrids) {
      auto inputs = terms;
      auto result = initial;
      Elements<T> &out = c.inPlace ? inputs.back() : result;
      launch(type, c, blocks, inputs, out);
      for (int64_t i = 0; i < out.size(); ++i)
        ASSERT_TRUE(out[i] == expected[i] ||
                    (isNaN(type, out[i]) && isNaN(type, expected[i])))
            << "element " << i << ": " << out[i] << ", not " << expected[i];
    }
  }

private:
  /// Numbers; for a maximum NaN and zeros of both signs too.
  template <typename T>
  Elements<T> random(ElementType type, int64_t shift, const Combination &c) {
    int64_t extent = std::max(c.terms.extent(c.count), c.out.extent(c.count));
    Elements<T> values(extent, shift);
    for (int64_t i = 0; i < extent; ++i) {
      float value = number();
      if (c.mode == cuda::kMaximum)
        switch (engine() % 8) {
        case 0:
          value = kNaN;
          break;
        case 1:
          value = std::copysign(0.0f, value);
        }
      auto bits = std::bit_cast<uint32_t>(value);
      values[i] = type == ElementType::F32    ? bits
                  : type == ElementType::BF16 ? bits >> 16
                                              : engine();
    }
    return values;
  }

  static bool isNaN(ElementType type, uint32_t bits) {
    if (type == ElementType::I32)
      return false;
    return std::isnan(
        std::bit_cast<float>(type == ElementType::BF16 ? bits << 16 : bits));
  }

  /// What the CPU computes of contiguous copies.
  template <typename T>
  static Elements<T> reference(ElementType type, const Combination &c,
                               const std::vector<Elements<T>> &terms,
                               const Elements<T> &initial) {
    auto gathered = [&](const Elements<T> &values, Rows rows) {
      Elements<T> copy(c.count);
      for (int64_t i = 0; i < c.count; ++i)
        copy[i] = values[rows.at(i)];
      return copy;
    };
    std::vector<Elements<T>> contiguous;
    std::vector<const void *> pointers;
    for (const Elements<T> &term : terms)
      contiguous.push_back(gathered(term, c.terms));
    for (const Elements<T> &term : contiguous)
      pointers.push_back(term.data());
    Elements<T> sum = gathered(initial, c.out);
    Collective collective;
    collective.kind = Collective::Kind::ReduceScatter;
    collective.type = type;
    collective.accumulate = c.mode == cuda::kAccumulate;
    collective.maximum = c.mode == cuda::kMaximum;
    combine(collective, pointers, sum.data(), c.count);
    Elements<T> result = initial;
    for (int64_t i = 0; i < c.count; ++i)
      result[c.out.at(i)] = sum[i];
    return result;
  }

  template <typename T>
  void launch(ElementType type, const Combination &c, unsigned blocks,
              const std::vector<Elements<T>> &inputs, Elements<T> &out) {
    Elements<cuda::Term> table(c.termCount);
    for (int64_t t = 0; t < c.termCount; ++t) {
      table[t] = {inputs[t].data(), c.terms.stride};
      know("term", inputs[t]);
    }
    know("table", table);
    if (!c.inPlace)
      know("out", out);
    expectRun(cuda::kCombineKernels[int(type)], blocks, table.data(),
              c.termCount, out.data(), c.count, c.terms.length, c.out.length,
              c.out.stride, int32_t(c.mode));
  }
};

TEST_F(Combine, AllTypes) {
  auto all = [&](const Combination &c) {
    check<uint32_t>(ElementType::F32, c);
    check<uint16_t>(ElementType::BF16, c);
    check<uint32_t>(ElementType::I32, c);
  };
  for (int64_t count : kCounts) {
    Rows whole{count, count}, chunks{24, 40}, odd{5, 7};
    for (auto mode : {cuda::kSum, cuda::kAccumulate, cuda::kMaximum})
      for (int64_t termCount : {1, 2, 5}) {
        if (count > 1000 && termCount != 2)
          continue;
        all({count, whole, whole, 0, termCount, mode, false});
        all({count, whole, whole, 1, termCount, mode, false});
        all({count, whole, chunks, 0, termCount, mode, false});
        all({count, chunks, {16, 16}, 0, termCount, mode, false});
        all({count, odd, chunks, 0, termCount, mode, false});
        all({count, chunks, odd, 0, termCount, mode, false});
        all({count, whole, whole, 0, termCount, mode, true});
        all({count, odd, odd, 0, termCount, mode, true});
      }
  }
}

class Copy : public ServiceKernels {
protected:
  template <typename T>
  void check(const char *kernel, int64_t count, Rows from, Rows to,
             int64_t shift) {
    SCOPED_TRACE(testing::Message()
                 << kernel << " of " << count << ", rows of " << from.length
                 << " each " << from.stride << " to " << to.length << " each "
                 << to.stride << ", shift " << shift);
    Elements<T> source(from.extent(count));
    Elements<T> initial(to.extent(count), shift);
    for (int64_t i = 0; i < source.size(); ++i)
      source[i] = engine();
    for (int64_t i = 0; i < initial.size(); ++i)
      initial[i] = engine();
    Elements<T> expected = initial;
    for (int64_t i = 0; i < count; ++i)
      expected[to.at(i)] = source[from.at(i)];
    for (unsigned blocks : kGrids) {
      Elements<T> destination = initial;
      know("source", source);
      know("destination", destination);
      expectRun(kernel, blocks, source.data(), destination.data(), count,
                from.length, from.stride, to.length, to.stride);
      EXPECT_EQ(std::memcmp(destination.data(), expected.data(),
                            expected.size() * sizeof(T)),
                0);
    }
  }
};

TEST_F(Copy, BothWidths) {
  for (int64_t count : kCounts) {
    Rows whole{count, count}, chunks{24, 40}, odd{5, 7};
    for (auto [from, to] : {std::pair(whole, whole),
                            {whole, chunks},
                            {chunks, Rows{16, 16}},
                            {chunks, odd},
                            {odd, whole}})
      for (int64_t shift : {0, 1}) {
        check<uint16_t>(cuda::kCopyKernels[0], count, from, to, shift);
        check<uint32_t>(cuda::kCopyKernels[1], count, from, to, shift);
      }
  }
}

//===----------------------------------------------------------------------===//
// Kernels of one block
//===----------------------------------------------------------------------===//

class OneBlock : public ServiceKernels {
protected:
  std::vector<std::string> sum(const Elements<float> &values, double &result) {
    Elements<double> place(1);
    know("sum", place);
    know("values", values);
    auto reports =
        run(cuda::kSumKernel, 1, place.data(), values.data(), values.size());
    result = place[0];
    return reports;
  }

  struct Step {
    Elements<double> squares;
    Elements<int32_t> order;
    int64_t lossRanks, microbatches;
    Elements<float> losses;
    double clip;
  };
  struct Outcome {
    float scale;
    double norm, weight, bad;
  };

  /// Of squares whose order is a part of them, backwards. A loss is NaN: none
  /// is read.
  Step makeStep(int64_t orderCount, int64_t ranks, int64_t microbatches,
                double clip) {
    Step step{Elements<double>(orderCount + 5),
              Elements<int32_t>(orderCount),
              ranks,
              microbatches,
              Elements<float>(2 * ranks * microbatches),
              clip};
    for (int64_t i = 0; i < step.squares.size(); ++i)
      step.squares[i] = std::exp(10 * number());
    for (int64_t i = 0; i < orderCount; ++i)
      step.order[i] = int32_t(orderCount + 2 - i);
    for (int64_t i = 0; i < step.losses.size(); i += 2) {
      step.losses[i] = float(kNaN);
      step.losses[i + 1] = std::exp(5 * number());
    }
    return step;
  }

  std::vector<std::string> finish(const Step &step, Outcome &outcome) {
    Elements<float> scale(1);
    Elements<double> result(3);
    know("squares", step.squares);
    know("order", step.order);
    know("losses", step.losses);
    know("scale", scale);
    know("result", result);
    auto reports =
        run(cuda::kFinishStepKernel, 1, step.squares.data(), step.order.data(),
            step.order.size(), step.losses.data(), step.lossRanks,
            step.microbatches, step.clip, scale.data(), result.data());
    outcome = {scale[0], result[0], result[1], result[2]};
    return reports;
  }

  static Outcome reference(const Step &step) {
    double total = 0, weight = 0, bad = -1;
    for (int64_t i = 0; i < step.order.size(); ++i) {
      double square = step.squares[step.order[i]];
      if (!std::isfinite(square) && bad < 0)
        bad = double(i);
      total += square;
    }
    for (int64_t m = 0; m < step.microbatches; ++m)
      for (int64_t r = 0; r < step.lossRanks; ++r)
        weight += step.losses[2 * (r * step.microbatches + m) + 1];
    double norm = std::sqrt(total) / weight;
    double factor =
        step.clip > 0 ? std::min(1.0, step.clip / (norm + 1e-6)) : 1.0;
    return {float(factor / weight), norm, weight, bad};
  }

  void checkStep(const Step &step) {
    Outcome got, expected = reference(step);
    for (const std::string &report : finish(step, got))
      ADD_FAILURE() << report;
    auto isSame = [](double a, double b) {
      return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b) ||
             (std::isnan(a) && std::isnan(b));
    };
    EXPECT_TRUE(isSame(got.scale, expected.scale))
        << got.scale << ", not " << expected.scale;
    EXPECT_TRUE(isSame(got.norm, expected.norm))
        << got.norm << ", not " << expected.norm;
    EXPECT_TRUE(isSame(got.weight, expected.weight))
        << got.weight << ", not " << expected.weight;
    EXPECT_EQ(got.bad, expected.bad);
  }

  Elements<float> manyMagnitudes(int64_t count) {
    Elements<float> values(count);
    for (int64_t i = 0; i < count; ++i)
      values[i] = std::exp(30 * number());
    return values;
  }
};

TEST_F(OneBlock, Sum) {
  for (int64_t count : {0, 1, 3, 255, 256, 257, 2047, 100003}) {
    SCOPED_TRACE(count);
    Elements<float> values = manyMagnitudes(count);
    double sums[cuda::kServiceThreads] = {};
    for (int64_t i = 0; i < count; ++i)
      sums[i % cuda::kServiceThreads] += values[i];
    for (unsigned half = cuda::kServiceThreads / 2; half > 0; half /= 2)
      for (unsigned t = 0; t < half; ++t)
        sums[t] += sums[t + half];
    double got = 0;
    for (const std::string &report : sum(values, got))
      ADD_FAILURE() << report;
    EXPECT_EQ(got, sums[0]);
  }
}

TEST_F(OneBlock, FinishStep) {
  for (int64_t orderCount : {1, 3, 255, 256, 257, 1001})
    for (auto [ranks, microbatches] :
         {std::pair<int64_t, int64_t>(1, 1), {1, 257}, {3, 4}, {2, 150}})
      for (double clip : {0.0, 1e-3, 1e9}) {
        SCOPED_TRACE(testing::Message()
                     << orderCount << " squares, losses of " << ranks << " x "
                     << microbatches << ", clip " << clip);
        checkStep(makeStep(orderCount, ranks, microbatches, clip));
      }
}

TEST_F(OneBlock, FindsTheFirstSquareThatIsNotFinite) {
  for (double bad : {kNaN, kInfinity})
    for (int64_t first : {0, 255, 256, 700}) {
      SCOPED_TRACE(testing::Message() << bad << " at " << first);
      Step step = makeStep(1001, 2, 3, 1.0);
      step.squares[0] = bad; // not in the order
      for (int64_t i : {first, int64_t(900)})
        step.squares[step.order[i]] = bad;
      checkStep(step);
    }
  // A weight is not a square.
  Step step = makeStep(5, 2, 3, 1.0);
  step.losses[1] = float(kInfinity);
  checkStep(step);
}

/// In one kernel or the other.
TEST_F(OneBlock, NeedsEachBarrier) {
  auto kind = lowering::GpuSynchronization::Barrier;
  unsigned count = lowering::countSynchronizations(gpu->get(), kind);
  ASSERT_GT(count, 2u);
  Elements<float> values = manyMagnitudes(300);
  Step step = makeStep(600, 1, 1, 1.0);
  for (unsigned i = 0; i < count; ++i) {
    kernels = gpu->compile({true, std::pair(kind, i)});
    ASSERT_TRUE(kernels) << gpu->takeDiagnostics();
    double total;
    Outcome outcome;
    EXPECT_FALSE(sum(values, total).empty() && finish(step, outcome).empty())
        << "barrier " << i << " is not needed";
  }
}

TEST(ServiceKernelNames, AreNotTaken) {
  auto twice = GpuKernels::build([](mlir::gpu::GPUModuleOp module) {
    return llvm::success(succeeded(lowering::addServiceKernels(module)) &&
                         succeeded(lowering::addServiceKernels(module)));
  });
  EXPECT_FALSE(*twice);
  EXPECT_EQ(twice->takeDiagnostics(),
            "expected kernels of a model, got 'rota_service_thread', a name of "
            "the runtime's kernels\n");
}

} // namespace
} // namespace rota::test
