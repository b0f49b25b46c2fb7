// SPDX-License-Identifier: Apache-2.0
//
// Sorts the letters of an einsum into groups and reads off strides.
#include "lowering/executable/Gemm.h"

using namespace mlir;

namespace rota::lowering {
namespace {

/// A tensor of the equation: its letters of a size above 1 and the distance
/// between neighbours along each, in elements.
struct Indexed {
  std::string letters;
  llvm::SmallDenseMap<char, int64_t> stride;
  bool has(char letter) const { return letters.find(letter) != letters.npos; }
};

/// Letters that act as one dimension.
struct LetterGroup {
  std::string letters;
  int64_t size = 1;
};

class Planner {
public:
  explicit Planner(mlir::rota::EinsumOp einsum) : einsum(einsum) {
    auto [lhs, rhs, result] = einsum.getLetters();
    left = index(lhs, einsum.getLhs());
    right = index(rhs, einsum.getRhs());
    out = index(result, einsum.getResult());
  }

  FailureOr<GemmPlan> plan() {
    LetterGroup batch = group(out, left, &right),
                k = group(left, right, nullptr);
    for (bool swapped : {false, true}) {
      const Indexed &a = swapped ? right : left, &b = swapped ? left : right;
      GemmPlan plan;
      plan.swapped = swapped;
      LetterGroup m = only(out, a, b), n = only(out, b, a);
      if (fill(plan.gemm, a, b, batch, m, n, k)) {
        plan.gemm.typeA = plan.gemm.typeB = type(einsum.getLhs());
        plan.gemm.typeC = type(einsum.getResult());
        return plan;
      }
    }
    return einsum.emitOpError(
               "expected an equation that is one matrix product, "
               "batched at most, got '")
           << einsum.getEquation() << "' on " << einsum.getLhs().getType()
           << " and " << einsum.getRhs().getType();
  }

private:
  Indexed index(StringRef letters, Value value) {
    Indexed result;
    auto type = cast<RankedTensorType>(value.getType());
    ArrayRef<int64_t> shape = type.getShape();
    int64_t stride = 1;
    auto next = [&](size_t i) {
      return i + 1 == letters.size() ? mlir::rota::RowStrideAttr::of(type)
                                     : stride * shape[i];
    };
    for (size_t i = letters.size(); i-- > 0; stride = next(i)) {
      if (shape[i] == 1)
        continue;
      result.letters.insert(result.letters.begin(), letters[i]);
      result.stride[letters[i]] = stride;
      sizes[letters[i]] = shape[i];
    }
    return result;
  }

  static int32_t type(Value value) {
    return cast<RankedTensorType>(value.getType()).getElementType().isBF16()
               ? ROTA_BF16
               : ROTA_F32;
  }

  template <typename Predicate>
  LetterGroup collect(const Indexed &order, Predicate wanted) {
    LetterGroup result;
    for (char letter : order.letters)
      if (wanted(letter)) {
        result.letters += letter;
        result.size *= sizes[letter];
      }
    return result;
  }
  /// Letters of `order` that `other` has too and, with `third`, that one as
  /// well; without, that the result has not.
  LetterGroup group(const Indexed &order, const Indexed &other,
                    const Indexed *third) {
    return collect(order, [&](char letter) {
      return other.has(letter) &&
             (third ? third->has(letter) : !out.has(letter));
    });
  }
  LetterGroup only(const Indexed &order, const Indexed &in,
                   const Indexed &notIn) {
    return collect(order, [&](char letter) {
      return in.has(letter) && !notIn.has(letter);
    });
  }

  /// The distance between neighbours of the group in `tensor`; nothing when it
  /// has none there. 0 for a group of one element.
  std::optional<int64_t> strideOf(const LetterGroup &g, const Indexed &tensor) {
    if (g.letters.empty())
      return 0;
    for (size_t i = 0; i + 1 < g.letters.size(); ++i)
      if (tensor.stride.lookup(g.letters[i]) !=
          sizes[g.letters[i + 1]] * tensor.stride.lookup(g.letters[i + 1]))
        return std::nullopt;
    return tensor.stride.lookup(g.letters.back());
  }

  /// Reads a matrix [rows, columns]: the distance between its rows as stored
  /// and whether it is stored transposed.
  static bool matrix(const LetterGroup &rows, int64_t rowStride,
                     const LetterGroup &columns, int64_t columnStride,
                     int64_t &leading, int32_t &transposed) {
    transposed = columns.size > 1 && columnStride != 1;
    if (transposed && rows.size > 1 && rowStride != 1)
      return false;
    int64_t between = transposed ? columnStride : rowStride;
    int64_t length = transposed ? rows.size : columns.size;
    // A single row has no distance to the next.
    leading = std::max(between, length);
    return true;
  }

  bool fill(RotaGemm &gemm, const Indexed &a, const Indexed &b,
            const LetterGroup &batch, const LetterGroup &m,
            const LetterGroup &n, const LetterGroup &k) {
    auto batchA = strideOf(batch, a), batchB = strideOf(batch, b),
         batchC = strideOf(batch, out);
    auto mA = strideOf(m, a), kA = strideOf(k, a);
    auto nB = strideOf(n, b), kB = strideOf(k, b);
    auto mC = strideOf(m, out), nC = strideOf(n, out);
    for (auto &stride : {batchA, batchB, batchC, mA, kA, nB, kB, mC, nC})
      if (!stride)
        return false;
    int32_t transposeC = 0;
    if (!matrix(m, *mA, k, *kA, gemm.lda, gemm.transposeA) ||
        !matrix(k, *kB, n, *nB, gemm.ldb, gemm.transposeB) ||
        !matrix(m, *mC, n, *nC, gemm.ldc, transposeC) || transposeC)
      return false;
    gemm.batch = batch.size;
    gemm.m = m.size;
    gemm.n = n.size;
    gemm.k = k.size;
    gemm.strideA = *batchA;
    gemm.strideB = *batchB;
    gemm.strideC = *batchC;
    return true;
  }

  mlir::rota::EinsumOp einsum;
  llvm::SmallDenseMap<char, int64_t> sizes;
  Indexed left, right, out;
};

} // namespace

FailureOr<GemmPlan> planGemm(mlir::rota::EinsumOp einsum) {
  return Planner(einsum).plan();
}

} // namespace rota::lowering
