// SPDX-License-Identifier: Apache-2.0
//
// Einsums as matrix products: the description that planGemm makes, carried out
// loop by loop as runtime/Abi.h says, against the sum over all letters.
#include "lowering/executable/Gemm.h"

#include "mlir/IR/MLIRContext.h"

#include <gtest/gtest.h>
#include <map>
#include <random>

using namespace mlir;

namespace rota::lowering {
namespace {

const std::map<char, int64_t> kSizes = {{'a', 1}, {'b', 2}, {'s', 3}, {'h', 4},
                                        {'d', 5}, {'k', 6}, {'n', 7}, {'e', 8}};

int64_t elements(const std::string &letters) {
  int64_t count = 1;
  for (char letter : letters)
    count *= kSizes.at(letter);
  return count;
}

/// The element of a row-major tensor at these positions of its letters.
int64_t offset(const std::string &letters,
               const std::map<char, int64_t> &position) {
  int64_t index = 0;
  for (char letter : letters)
    index = index * kSizes.at(letter) + position.at(letter);
  return index;
}

struct Equation {
  std::string lhs, rhs, result;
};

/// The sum over all letters, straight from the equation.
std::vector<double> sum(const Equation &e, const std::vector<double> &lhs,
                        const std::vector<double> &rhs) {
  std::vector<double> result(elements(e.result));
  std::string letters;
  for (char letter : e.lhs + e.rhs)
    if (letters.find(letter) == letters.npos)
      letters += letter;
  std::map<char, int64_t> position;
  for (int64_t i = 0; i < elements(letters); ++i) {
    int64_t rest = i;
    for (char letter : letters) {
      position[letter] = rest % kSizes.at(letter);
      rest /= kSizes.at(letter);
    }
    result[offset(e.result, position)] +=
        lhs[offset(e.lhs, position)] * rhs[offset(e.rhs, position)];
  }
  return result;
}

std::vector<double> run(const RotaGemm &g, const std::vector<double> &a,
                        const std::vector<double> &b, size_t size) {
  std::vector<double> c(size);
  for (int64_t batch = 0; batch < g.batch; ++batch)
    for (int64_t m = 0; m < g.m; ++m)
      for (int64_t n = 0; n < g.n; ++n)
        for (int64_t k = 0; k < g.k; ++k)
          c.at(batch * g.strideC + m * g.ldc + n) +=
              a.at(batch * g.strideA +
                   (g.transposeA ? k * g.lda + m : m * g.lda + k)) *
              b.at(batch * g.strideB +
                   (g.transposeB ? n * g.ldb + k : k * g.ldb + n));
  return c;
}

class GemmTest : public testing::Test {
protected:
  GemmTest() { context.loadDialect<mlir::rota::RotaDialect>(); }

  /// With `stride`, rows of [b, s, n] are that far apart.
  FailureOr<GemmPlan> plan(const Equation &e, int64_t stride = 0) {
    OpBuilder b(&context);
    auto type = [&](const std::string &letters) {
      SmallVector<int64_t> shape;
      for (char letter : letters)
        shape.push_back(kSizes.at(letter));
      Attribute rows;
      if (stride && letters == "bsn")
        rows = mlir::rota::RowStrideAttr::get(&context, stride);
      return RankedTensorType::get(shape, b.getF32Type(), rows);
    };
    module = ModuleOp::create(b.getUnknownLoc());
    b.setInsertionPointToStart(module->getBody());
    auto function = func::FuncOp::create(
        b, b.getUnknownLoc(), "f",
        b.getFunctionType({type(e.lhs), type(e.rhs)}, {type(e.result)}));
    Block *entry = function.addEntryBlock();
    b.setInsertionPointToStart(entry);
    auto einsum = mlir::rota::EinsumOp::create(
        b, b.getUnknownLoc(), type(e.result),
        e.lhs + "," + e.rhs + "->" + e.result, entry->getArgument(0),
        entry->getArgument(1));
    return planGemm(einsum);
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};

TEST_F(GemmTest, EqualsTheSum) {
  std::mt19937 random(1);
  std::normal_distribution<double> normal;
  for (const Equation &e : std::vector<Equation>{
           {"bsk", "nk", "bsn"},    // y = x W^T
           {"bsk", "kn", "bsn"},    // y = x W
           {"bsn", "nk", "bsk"},    // dx
           {"bsn", "bsk", "nk"},    // dW
           {"bsk", "bsn", "kn"},    // dW
           {"nk", "bsk", "bsn"},    // weight on the left
           {"bshd", "hde", "bshe"}, // a product for each head
           {"bshe", "hde", "bshd"}, // its derivatives
           {"bshe", "bshd", "hde"},
           {"bshd", "nhd", "bsn"}, // heads and their features merged
           {"bsn", "nhd", "bshd"},
           {"hbs", "hsk", "hbk"}, // batched, contiguous
           {"hsb", "hsk", "hbk"}, // batched, transposed
           {"ask", "kn", "asn"},  // a size of one, first and last
           {"sk", "kna", "san"},
           {"sa", "an", "sn"}, // an outer product
           {"k", "kn", "n"},   // a vector
           {"sk", "k", "s"},
           {"h", "h", "h"}}) { // numbers, one by one
    auto plan = this->plan(e);
    ASSERT_TRUE(succeeded(plan)) << e.lhs << "," << e.rhs << "->" << e.result;
    std::vector<double> lhs(elements(e.lhs)), rhs(elements(e.rhs));
    for (double &value : lhs)
      value = normal(random);
    for (double &value : rhs)
      value = normal(random);
    std::vector<double> expected = sum(e, lhs, rhs);
    const RotaGemm &g = plan->gemm;
    std::vector<double> actual =
        run(g, plan->swapped ? rhs : lhs, plan->swapped ? lhs : rhs,
            expected.size());
    for (size_t i = 0; i < expected.size(); ++i)
      EXPECT_NEAR(actual[i], expected[i], 1e-12)
          << e.lhs << "," << e.rhs << "->" << e.result;
    // Rows as stored do not overlap: a library may check that.
    EXPECT_GE(g.lda, g.transposeA ? g.m : g.k);
    EXPECT_GE(g.ldb, g.transposeB ? g.k : g.n);
    EXPECT_GE(g.ldc, g.n);
  }
}

TEST_F(GemmTest, RowStrides) {
  auto logits = plan({"bsk", "nk", "bsn"}, /*stride=*/64);
  ASSERT_TRUE(succeeded(logits));
  EXPECT_EQ(logits->gemm.ldc, 64);
  EXPECT_EQ(logits->gemm.m, 6);
  EXPECT_EQ(logits->gemm.n, 7);
  auto dx = plan({"bsn", "nk", "bsk"}, /*stride=*/64);
  ASSERT_TRUE(succeeded(dx));
  EXPECT_EQ(dx->gemm.lda, 64);
  EXPECT_EQ(dx->gemm.ldc, 6);
  EXPECT_EQ(dx->gemm.k, 7);
  auto dw = plan({"bsn", "bsk", "nk"}, /*stride=*/64);
  ASSERT_TRUE(succeeded(dw));
  EXPECT_TRUE(dw->gemm.transposeA);
  EXPECT_EQ(dw->gemm.lda, 64);
  EXPECT_EQ(dw->gemm.m, 7);
  EXPECT_EQ(dw->gemm.k, 6);
}

TEST_F(GemmTest, ErrorsNameTheEquation) {
  std::string message;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    message = diagnostic.str();
    return success();
  });
  // Neighbours in the operand are not neighbours in the result.
  EXPECT_TRUE(failed(plan({"bsk", "kn", "sbn"})));
  EXPECT_NE(message.find("'bsk,kn->sbn'"), message.npos) << message;
  EXPECT_TRUE(failed(plan({"bskh", "kn", "bhns"})));
  EXPECT_NE(message.find("'bskh,kn->bhns'"), message.npos) << message;
}

} // namespace
} // namespace rota::lowering
