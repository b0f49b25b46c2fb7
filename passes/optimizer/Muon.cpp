// SPDX-License-Identifier: Apache-2.0
//
// Muon: Jordan et al., "Muon: an optimizer for hidden layers in neural
// networks", 2024, as torch.optim.Muon computes it. Matrices of layers take
// steps along the nearest orthogonal matrix to their momentum; AdamW updates
// the other parameters.
#include "ir/rota/sharding/Sharding.h"
#include "passes/optimizer/Optimizers.h"

#include <cmath>

using namespace mlir;
using namespace mlir::rota;

namespace {

/// The matrices of a tensor of momenta. Its other dimensions count them: those
/// before the matrix, and heads, which come first among the rows or columns.
struct Matrices {
  explicit Matrices(const UpdateForm &form) {
    SmallVector<int64_t> shape(form.type.getShape());
    rowDim = shape.size() - 2;
    columnDim = rowDim + 1;
    rows = form.rows / form.rowHeads;
    columns = form.columns / form.columnHeads;
    if (form.rowHeads > 1) {
      shape = {form.rowHeads, rows, shape[1]};
      ++rowDim, ++columnDim;
    } else if (form.columnHeads > 1) {
      shape = {shape[0], form.columnHeads, columns};
      ++columnDim;
    }
    type = form.type.clone(shape);
    for (int64_t d = 0; d < type.getRank(); ++d)
      if (d != rowDim && d != columnDim)
        counting.push_back(d);
  }

  RankedTensorType type;
  int64_t rowDim, columnDim;
  int64_t rows, columns; // size of one matrix, without padding
  SmallVector<int64_t> counting;
};

/// Newton-Schulz iterations on each matrix.
class NewtonSchulz {
public:
  explicit NewtonSchulz(UpdateBuilder &b)
      : b(b), matrices(b.form()), type(matrices.type),
        isTall(matrices.rows > matrices.columns) {
    SmallVector<int64_t> shape;
    for (int64_t d : matrices.counting)
      shape.push_back(type.getDimSize(d));
    int64_t small =
        type.getDimSize(isTall ? matrices.columnDim : matrices.rowDim);
    shape.append({small, small});
    square = RankedTensorType::get(shape, b.getF32Type());
    product = b.settings().muonDtype == UpdateType::BF16 ? Type(b.getBF16Type())
                                                         : b.getF32Type();
  }

  /// Matrices with the singular vectors of those of `momentum` and singular
  /// values between about 0.7 and 1.2. Where a mesh divides matrices, each rank
  /// puts them together and computes whole ones.
  Value run(Value momentum) {
    Value x = b.convert(momentum, product);
    x = b.convert(constrain(x, /*areMatricesWhole=*/true), b.getF32Type());
    x = reshape(x, type);
    x = b.div(x, b.add(norm(x), b.constant(type, kEpsilonOfNorm)));
    for (int i = 0; i < kSteps; ++i)
      x = step(x);
    x = reshape(x, b.form().type);
    x = constrain(x, /*areMatricesWhole=*/true);
    return constrain(x, /*areMatricesWhole=*/false);
  }

private:
  static constexpr int kSteps = 5;
  static constexpr double kA = 3.4445, kB = -4.7750, kC = 2.0315,
                          kEpsilonOfNorm = 1e-7;

  Value reshape(Value value, RankedTensorType to) {
    return value.getType() == to ? value : ReshapeOp::create(b, to, value);
  }

  /// Constrains every rank to whole matrices, or its part of the parameter.
  Value constrain(Value value, bool areMatricesWhole) {
    ShardingAttr sharding = b.form().sharding;
    if (!sharding)
      return value;
    SmallVector<DimensionShardingAttr> dimensions(sharding.getDimensions());
    auto makeWhole = [&](DimensionShardingAttr &dimension, int64_t heads) {
      dimension = DimensionShardingAttr::get(
          b.getContext(), axesOfHeads(dimension.getAxes(), heads),
          /*open=*/false);
    };
    if (areMatricesWhole) {
      makeWhole(dimensions[dimensions.size() - 2], b.form().rowHeads);
      makeWhole(dimensions.back(), b.form().columnHeads);
    }
    return ConstrainOp::create(
        b, value, ShardingAttr::get(b.getContext(), dimensions, {}, {}));
  }

  /// The first of the axes that divide a dimension: as many as leave each rank
  /// whole heads.
  ArrayRef<AxisRefAttr> axesOfHeads(ArrayRef<AxisRefAttr> axes, int64_t heads) {
    MeshAttr mesh = meshOf(b.getBlock()->getParentOp());
    size_t count = axes.size();
    while (count > 0 && heads % mesh.getSize(axes.take_front(count)) != 0)
      --count;
    return axes.take_front(count);
  }

  /// The Frobenius norm of each matrix, everywhere in it.
  Value norm(Value x) {
    Value sums = b.mul(x, x);
    SmallVector<int64_t> shape(type.getShape());
    for (int64_t dim : {matrices.columnDim, matrices.rowDim}) {
      shape.erase(shape.begin() + dim);
      sums = ReduceOp::create(b, type.clone(shape), ReduceKind::Sum, sums,
                              ArrayRef<int64_t>{dim});
    }
    return BroadcastOp::create(b, type, b.sqrt(sums), matrices.counting);
  }

  /// a*X + (b*A + c*A*A) * X with A = X * X^T, X having no more rows than
  /// columns; the same of the transposed matrix where it has more.
  Value step(Value x) {
    Value rounded = b.convert(x, product);
    Value gram = isTall ? multiply(named('k', 'i'), named('k', 'j'), rounded,
                                   rounded, squared('i', 'j'), square)
                        : multiply(named('i', 'k'), named('j', 'k'), rounded,
                                   rounded, squared('i', 'j'), square);
    Value roundedGram = b.convert(gram, product);
    Value power = multiply(squared('i', 'k'), squared('k', 'j'), roundedGram,
                           roundedGram, squared('i', 'j'), square);
    Value polynomial = b.convert(b.add(b.mul(b.constant(square, kB), gram),
                                       b.mul(b.constant(square, kC), power)),
                                 product);
    Value moved = isTall ? multiply(named('i', 'k'), squared('k', 'j'), rounded,
                                    polynomial, named('i', 'j'), type)
                         : multiply(squared('i', 'k'), named('k', 'j'),
                                    polynomial, rounded, named('i', 'j'), type);
    return b.add(b.mul(b.constant(type, kA), x), moved);
  }

  static char letter(size_t counting) { return char('a' + counting); }

  /// The letters of the matrices with those of row and column.
  std::string named(char row, char column) const {
    std::string letters(type.getRank(), row);
    letters[matrices.columnDim] = column;
    for (auto [i, d] : llvm::enumerate(matrices.counting))
      letters[d] = letter(i);
    return letters;
  }

  /// The letters of the squares of matrices.
  std::string squared(char row, char column) const {
    std::string letters;
    for (size_t i = 0; i < matrices.counting.size(); ++i)
      letters += letter(i);
    return letters + row + column;
  }

  /// A product of matrices, for each of them.
  Value multiply(const std::string &first, const std::string &second,
                 Value left, Value right, const std::string &out,
                 RankedTensorType result) {
    return EinsumOp::create(b, result, first + "," + second + "->" + out, left,
                            right);
  }

  UpdateBuilder &b;
  Matrices matrices;
  RankedTensorType type, square;
  bool isTall;
  Type product; // type of the operands of products
};

} // namespace

static double scaleOf(const UpdateForm &form, MuonScale scale) {
  Matrices matrices(form);
  auto rows = double(matrices.rows), columns = double(matrices.columns);
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
                                             "muon-scale", "muon-per-head"};

const OptimizerSpec mlir::rota::muon = {
    "muon",   options, settings, /*isNesterov=*/true, /*knowsMatrices=*/true,
    buildMuon};
