// SPDX-License-Identifier: Apache-2.0
//
// Kernels that do two ops at once (KernelEmitters::lookupPair), on the
// emulator: the bits of the ops' own kernels.
#include "test/lowering/gpu/EmulatedOp.h"

#include <cstring>
#include <gtest/gtest.h>
#include <random>

namespace rota::test {
namespace {

using Tensors = std::vector<TensorBytes>;

class PairKernels : public testing::Test {
protected:
  void fill(TensorBytes &tensor, int64_t end) {
    for (int64_t i = 0; i < tensor.count; ++i)
      tensor.set(i, tensor.type == "i32"
                        ? double(std::uniform_int_distribution<int64_t>(
                              -1, end - 1)(engine))
                        : std::uniform_real_distribution<>(-4, 4)(engine));
  }

  static void run(EmulatedOp &op, const std::vector<char *> &buffers,
                  std::optional<uint64_t> seed = std::nullopt) {
    for (const std::string &report : op.run(buffers, seed))
      ADD_FAILURE() << report;
  }

  static void expectEqual(const TensorBytes &a, const TensorBytes &b) {
    EXPECT_EQ(std::memcmp(a.data(), b.data(), a.bytes()), 0);
  }

  std::mt19937 engine{11};
};

std::string module(const std::string &arguments, const std::string &body) {
  return "func.func @f(" + arguments + ") {\n" + body + "\n return\n}\n";
}

TEST_F(PairKernels, LossAndItsGradient) {
  for (const char *element : {"f32", "bf16"})
    for (int64_t columns : {7, 48, 1000, 20000}) {
      std::string logits =
          "tensor<2x3x" + std::to_string(columns) + "x" + element + ">";
      SCOPED_TRACE(logits);
      std::string arguments =
          "%l: " + logits + ", %t: tensor<2x3xi32>, %d: tensor<f32>";
      std::string loss = "%s, %w, %e = rota.cross_entropy %l, %t : (" + logits +
                         ", tensor<2x3xi32>) -> (tensor<f32>, tensor<f32>, "
                         "tensor<2x3xf32>)";
      std::string gradient =
          "%g = rota.cross_entropy_grad %d, %l, %t, %e : (tensor<f32>, " +
          logits + ", tensor<2x3xi32>, tensor<2x3xf32>) -> " + logits;
      auto first = EmulatedOp::create(module(arguments, loss));
      auto second = EmulatedOp::create(
          module(arguments + ", %e: tensor<2x3xf32>", gradient));
      auto both = EmulatedOp::create(module(arguments, loss + "\n" + gradient));
      ASSERT_TRUE(first && second && both);
      Tensors operands = both->makeOperands(), results = both->makeResults();
      Tensors expected = both->makeResults();
      ASSERT_EQ(operands.size(), 6u);
      ASSERT_EQ(results.size(), 4u);
      TensorBytes &l = operands[0], &t = operands[1], &d = operands[2];
      for (TensorBytes *operand : {&l, &t, &d})
        fill(*operand, columns);
      char *e = expected[2].data();
      run(*first,
          {l.data(), t.data(), expected[0].data(), expected[1].data(), e});
      run(*second, {d.data(), l.data(), t.data(), e, expected[3].data()});
      for (std::optional<uint64_t> seed :
           {std::optional<uint64_t>(), std::optional<uint64_t>(5)}) {
        TensorBytes logitsCopy = l; // overwritten by the gradient
        for (bool inPlace : {false, true}) {
          char *at = logitsCopy.data();
          char *to = inPlace ? at : results[3].data();
          run(*both,
              {at, t.data(), d.data(), at, t.data(), results[2].data(),
               results[0].data(), results[1].data(), results[2].data(), to},
              seed);
          for (int i : {0, 1, 2})
            expectEqual(results[size_t(i)], expected[size_t(i)]);
          expectEqual(inPlace ? logitsCopy : results[3], expected[3]);
        }
      }
    }
}

TEST_F(PairKernels, RotatedQueriesAndKeys) {
  for (const char *element : {"f32", "bf16"})
    for (auto [queries, keys] :
         {std::pair<int64_t, int64_t>(4, 4), {6, 2}, {1, 8}, {12, 3}})
      for (const char *inverse : {"", "inverse "}) {
        auto type = [&](int64_t heads) {
          return "tensor<2x3x" + std::to_string(heads) + "x24x" + element + ">";
        };
        SCOPED_TRACE(type(queries) + inverse + std::to_string(keys));
        std::string table = "tensor<3x12x2xf32>";
        std::string arguments =
            "%q: " + type(queries) + ", %k: " + type(keys) + ", %t: " + table;
        auto rope = [&](const std::string &name, int64_t heads) {
          return "%r" + name + " = rota.rope " + inverse + "%" + name +
                 ", %t : " + type(heads) + ", " + table;
        };
        auto first = EmulatedOp::create(module(arguments, rope("q", queries)));
        auto second = EmulatedOp::create(module(arguments, rope("k", keys)));
        auto both = EmulatedOp::create(
            module(arguments, rope("q", queries) + "\n" + rope("k", keys)));
        ASSERT_TRUE(first && second && both);
        Tensors operands = both->makeOperands(), results = both->makeResults();
        Tensors expected = both->makeResults();
        ASSERT_EQ(operands.size(), 4u);
        ASSERT_EQ(results.size(), 2u);
        for (TensorBytes &operand : operands)
          fill(operand, 1);
        char *q = operands[0].data(), *t = operands[1].data(),
             *k = operands[2].data();
        run(*first, {q, t, expected[0].data()});
        run(*second, {k, t, expected[1].data()});
        run(*both, {q, t, k, t, results[0].data(), results[1].data()});
        for (size_t i : {0, 1})
          expectEqual(results[i], expected[i]);
        run(*both, {q, t, k, t, q, k}, /*seed=*/3);
        expectEqual(operands[0], expected[0]);
        expectEqual(operands[2], expected[1]);
      }
}

} // namespace
} // namespace rota::test
