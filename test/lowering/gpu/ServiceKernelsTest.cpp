// SPDX-License-Identifier: Apache-2.0
//
// The kernels of gradients, parameters and collectives that the runtime
// launches by itself, on the emulator: the bits of the CPU's code with every
// grid, count, type and form of rows.
#include "lowering/gpu/ServiceKernels.h"
#include "lowering/gpu/NvvmModule.h"
#include "runtime/collective/Blocks.h"
#include "test/lowering/gpu/ServiceKernelsFixture.h"

#include <bit>
#include <cmath>
#include <cstring>

namespace rota::test {
namespace {

/// The last is more than all threads of a grid take at once, eight each.
constexpr int64_t kCounts[] = {1, 3, 255, 256, 257, 10007};
constexpr unsigned kGrids[] = {1, 3};

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
        expectRun(cuda::kAddKernels[0], blocks, sum.data(), terms.data(),
                  count);
        EXPECT_EQ(std::memcmp(sum.data(), expected.data(), 4 * count), 0);
      }
}

/// To the nearest, ties to even; NaN as GPUs write it.
uint16_t roundToBf16(float value) {
  auto bits = std::bit_cast<uint32_t>(value);
  return std::isnan(value) ? 0x7FFF
                           : (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16;
}

TEST_F(ServiceKernels, AddNarrow) {
  auto wide = [](uint16_t bits) {
    return std::bit_cast<float>(uint32_t(bits) << 16);
  };
  for (int64_t count : kCounts)
    for (int64_t shift : {0, 1})
      for (unsigned blocks : kGrids) {
        SCOPED_TRACE(testing::Message() << count << " from " << shift);
        Elements<uint16_t> sum(count), terms(count, shift), expected(count);
        for (int64_t i = 0; i < count; ++i) {
          sum[i] = roundToBf16(number()), terms[i] = roundToBf16(number());
          expected[i] = roundToBf16(wide(sum[i]) + wide(terms[i]));
        }
        know("sum", sum);
        know("terms", terms);
        expectRun(cuda::kAddKernels[1], blocks, sum.data(), terms.data(),
                  count);
        EXPECT_EQ(std::memcmp(sum.data(), expected.data(), 2 * count), 0);
      }
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
  int64_t shift; // shift of the first term, in elements
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

  /// The CPU's results of contiguous copies.
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

TEST_F(ServiceKernels, NamesAreNotTaken) {
  mlir::MLIRContext context;
  std::string said;
  mlir::ScopedDiagnosticHandler handler(&context,
                                        [&](mlir::Diagnostic &diagnostic) {
                                          said = diagnostic.str();
                                          return llvm::success();
                                        });
  EXPECT_TRUE(failed(lowering::linkServiceKernels(
      mlir::UnknownLoc::get(&context), gpu->get())));
  EXPECT_EQ(said, "expected kernels of a model, got 'rota_sum_f64', a name of "
                  "the runtime's kernels");
}

/// PTX that calls nothing and fuses nothing, with vectors of 16 bytes.
TEST_F(ServiceKernels, Ptx) {
  mlir::MLIRContext context;
  for (llvm::StringRef chip : lowering::trainerChips()) {
    SCOPED_TRACE(chip.str());
    auto ptx =
        lowering::emitPtx(mlir::UnknownLoc::get(&context), gpu->get(), chip);
    ASSERT_TRUE(succeeded(ptx));
    llvm::StringRef text = *ptx;
    EXPECT_FALSE(text.contains(".func"));
    EXPECT_FALSE(text.contains("fma."));
    // Additions of widened bf16 that LLVM had joined would round once.
    EXPECT_FALSE(text.contains("add.bf16") || text.contains("add.rn.bf16"));
    EXPECT_TRUE(text.contains("ld.global.v4.b32"));
    EXPECT_TRUE(text.contains("st.global.v4.b32"));
    EXPECT_TRUE(text.contains("cvt.rn.bf16x2.f32"));
    EXPECT_EQ(text.count(".visible .entry rota_"), 14u);
    EXPECT_EQ(text.count(".maxntid 256"), 14u);
  }
}

} // namespace
} // namespace rota::test
