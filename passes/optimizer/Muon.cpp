// SPDX-License-Identifier: Apache-2.0
//
// Muon: Jordan et al., "Muon: an optimizer for hidden layers in neural
// networks", 2024, as torch.optim.Muon computes it. Matrices of layers take
// steps along the nearest orthogonal matrix to their momentum; AdamW updates
// the other parameters.
#include "passes/optimizer/Optimizers.h"

#include <cmath>

using namespace mlir;
using namespace mlir::rota;

namespace {

/// Newton-Schulz iterations on each matrix of a tensor. Leading dimensions
/// count matrices.
class NewtonSchulz {
public:
  explicit NewtonSchulz(UpdateBuilder &b)
      : b(b), type(b.form().type), leading(type.getRank() - 2) {
    for (int64_t i = 0; i < leading; ++i)
      letters += char('a' + i);
    isTall = b.form().rows > b.form().columns;
    int64_t small = type.getDimSize(leading + (isTall ? 1 : 0));
    SmallVector<int64_t> shape(type.getShape().take_front(leading));
    shape.append({small, small});
    square = RankedTensorType::get(shape, b.getF32Type());
    product = b.settings().muonDtype == UpdateType::BF16 ? Type(b.getBF16Type())
                                                         : b.getF32Type();
  }

  /// A matrix with the singular vectors of `momentum` and singular values
  /// between about 0.7 and 1.2. Where a mesh divides the matrices, each rank
  /// puts them together and computes whole ones.
  Value run(Value momentum) {
    Value x = b.convert(momentum, product);
    x = b.convert(constrain(x, /*areMatricesWhole=*/true), b.getF32Type());
    x = b.div(x, b.add(norm(x), b.constant(type, kEpsilonOfNorm)));
    for (int i = 0; i < kSteps; ++i)
      x = step(x);
    x = constrain(x, /*areMatricesWhole=*/true);
    return constrain(x, /*areMatricesWhole=*/false);
  }

private:
  static constexpr int kSteps = 5;
  static constexpr double kA = 3.4445, kB = -4.7750, kC = 2.0315,
                          kEpsilonOfNorm = 1e-7;

  /// Says that every rank has whole matrices, or its part of the parameter.
  Value constrain(Value value, bool areMatricesWhole) {
    ShardingAttr sharding = b.form().sharding;
    if (!sharding)
      return value;
    SmallVector<DimensionShardingAttr> dimensions(sharding.getDimensions());
    if (areMatricesWhole)
      for (DimensionShardingAttr &dimension :
           MutableArrayRef(dimensions).take_back(2))
        dimension =
            DimensionShardingAttr::get(b.getContext(), {}, /*open=*/false);
    return ConstrainOp::create(
        b, value, ShardingAttr::get(b.getContext(), dimensions, {}, {}));
  }

  /// The Frobenius norm of each matrix, everywhere in it.
  Value norm(Value x) {
    Value sums = b.mul(x, x);
    auto shape = type.getShape();
    for (int64_t rank = leading + 1; rank >= leading; --rank)
      sums = ReduceOp::create(b, type.clone(shape.take_front(rank)),
                              ReduceKind::Sum, sums, ArrayRef<int64_t>{rank});
    auto counted = llvm::to_vector(llvm::seq<int64_t>(0, leading));
    return BroadcastOp::create(b, type, b.sqrt(sums), counted);
  }

  /// a*X + (b*A + c*A*A) * X with A = X * X^T, X having no more rows than
  /// columns; the same of the transposed matrix where it has more.
  Value step(Value x) {
    Value rounded = b.convert(x, product);
    Value gram =
        multiply(isTall ? "ki,kj->ij" : "ik,jk->ij", rounded, rounded, square);
    Value roundedGram = b.convert(gram, product);
    Value power = multiply("ik,kj->ij", roundedGram, roundedGram, square);
    Value polynomial = b.convert(b.add(b.mul(b.constant(square, kB), gram),
                                       b.mul(b.constant(square, kC), power)),
                                 product);
    Value moved = isTall ? multiply("ik,kj->ij", rounded, polynomial, type)
                         : multiply("ik,kj->ij", polynomial, rounded, type);
    return b.add(b.mul(b.constant(type, kA), x), moved);
  }

  /// An equation on matrices, for each of them.
  Value multiply(StringRef equation, Value left, Value right,
                 RankedTensorType result) {
    auto [operands, out] = equation.split("->");
    auto [first, second] = operands.split(",");
    std::string all = letters + first.str() + "," + letters + second.str() +
                      "->" + letters + out.str();
    return EinsumOp::create(b, result, all, left, right);
  }

  UpdateBuilder &b;
  RankedTensorType type, square;
  int64_t leading;
  std::string letters; // of the leading dimensions
  bool isTall;
  Type product; // of the operands of products
};

} // namespace

static double scaleOf(const UpdateForm &form, MuonScale scale) {
  auto rows = double(form.rows), columns = double(form.columns);
  return scale == MuonScale::Original
             ? std::sqrt(std::max(1.0, rows / columns))
             : 0.2 * std::sqrt(std::max(rows, columns));
}

static Value buildMuon(UpdateBuilder &b) {
  if (!b.form().isMatrix())
    return buildAdamW(b);
  Value g = b.gradient();
  Value step = b.runningMean("momentum", g, kMomentum);
  if (b.settings().nesterov)
    step = b.add(b.mul(b.complement(kMomentum), g),
                 b.mul(b.option(kMomentum), step));
  Value direction = NewtonSchulz(b).run(step);
  double scale = scaleOf(b.form(), b.settings().muonScale);
  return b.descend(b.mul(b.constant(b.form().type, scale), direction));
}

static const OptimizerSpec::Option options[] = {
    {kMomentum, 0.95, 0.0, kBelowOne, "Part of the momentum that a step keeps"},
    kBeta1,
    kBeta2,
    kEpsilon,
    kDecay};
static constexpr StringLiteral settings[] = {"nesterov", "muon-dtype",
                                             "muon-scale"};

const OptimizerSpec mlir::rota::muon = {
    "muon",   options, settings, /*isNesterov=*/true, /*knowsMatrices=*/true,
    buildMuon};
