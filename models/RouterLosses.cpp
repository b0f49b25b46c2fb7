// SPDX-License-Identifier: Apache-2.0
//
// The auxiliary losses of routers. With T tokens of a microbatch, c[x] choices
// of expert x and probabilities p[t, x], the softmax of the logits, they are
//   load balance  X * sum over x of (c[x] / T) * (sum over t of p[t, x] / T)
//                 (Fedus et al. 2021, equation 4; choices instead of tokens)
//   z             the mean over t of logsumexp(logits[t])^2
// for each layer and microbatch; a step has their means. Over a step, T, c[x]
// and the sum over t in the load balance are those of all its M microbatches:
// with the mean m[x] of c[x] over these, T' tokens of one, it is the mean over
// microbatches of
//   X * sum over x of (m[x] / T') * (sum over its t of p[t, x] / T')
#include "models/Experts.h"

using namespace mlir;
using namespace mlir::rota;

void ExpertConfig::readLosses(Config &config, const Microbatch &microbatch) {
  auto isLoss = [](double value) { return value >= 0; };
  double given = config.real("router_aux_loss_coef", 0.001,
                             "a number of at least 0", isLoss);
  bool counts = config.flag("output_router_logits", false);
  balanceLoss = microbatch.routers.balance.value_or(counts ? given : 0);
}

/// The probabilities [B, S, X] of logits, and their logsumexp [B, S].
static std::pair<Value, Value> softmax(ModelBuilder &builder, Value logits) {
  auto type = cast<RankedTensorType>(logits.getType());
  auto rows = type.clone(type.getShape().drop_back());
  const std::array<int64_t, 1> last = {2};
  const std::array<int64_t, 2> outer = {0, 1};
  Value most = ReduceOp::create(builder, rows, ReduceKind::Max, logits, last);
  Value shifted = arith::SubFOp::create(
      builder, logits, BroadcastOp::create(builder, type, most, outer));
  Value powers = math::ExpOp::create(builder, shifted);
  Value sum = ReduceOp::create(builder, rows, ReduceKind::Sum, powers, last);
  Value shares = arith::DivFOp::create(
      builder, powers, BroadcastOp::create(builder, type, sum, outer));
  Value logarithm = math::LogOp::create(builder, sum);
  return {shares, arith::AddFOp::create(builder, most, logarithm)};
}

/// The sum of the products of `a` and `b`.
static Value dot(ModelBuilder &builder, Value a, Value b) {
  Value product = arith::MulFOp::create(builder, a, b);
  auto type = cast<RankedTensorType>(product.getType());
  auto dims = llvm::to_vector(llvm::seq<int64_t>(0, type.getRank()));
  return ReduceOp::create(builder, type.clone(ArrayRef<int64_t>{}),
                          ReduceKind::Sum, product, dims);
}

/// `counts` [Q, X] of integers as numbers [X], summed over the parts: each
/// expert's sum of rows that are 1. One block, so that the experts are whole:
/// divided, they would divide what is computed from them, by ranks that have
/// other tokens.
static Value totals(ModelBuilder &builder, Value counts, int64_t rows) {
  auto type = cast<RankedTensorType>(counts.getType());
  int64_t experts = type.getDimSize(1);
  auto column = RankedTensorType::get({experts, 1}, builder.getF32Type());
  auto one = column.clone({type.getDimSize(0), rows, 1});
  Value ones = builder.splat(one, 1.0);
  Value sums =
      GroupedBiasGradOp::create(builder, column, ones, counts, /*blocks=*/1);
  return ReshapeOp::create(builder, column.clone({experts}), sums);
}

void ExpertBlock::addLosses(Value logits, Value counts, int64_t rows) {
  // Auxiliary losses are means over layers: a block of the loss has none.
  if ((config.balanceLoss == 0 && config.zLoss == 0) || !builder.isInLayer())
    return;
  auto type = cast<RankedTensorType>(logits.getType());
  double tokens = double(type.getDimSize(0)) * double(type.getDimSize(1));
  auto [shares, logsumexp] = softmax(builder, logits);
  if (config.balanceLoss != 0) {
    auto perExpert = type.clone({config.experts});
    Value share = ReduceOp::create(builder, perExpert, ReduceKind::Sum, shares,
                                   ArrayRef<int64_t>{0, 1});
    Value count =
        builder.microbatch.routers.balanceOver == LoadBalanceOver::Step
            ? Value(ObservedMeanOp::create(builder, perExpert, kExpertLoad))
            : totals(builder, counts, rows);
    AuxiliaryLossOp::create(builder, "load_balance", dot(builder, share, count),
                            APFloat(tokens * tokens / double(config.experts)),
                            APFloat(config.balanceLoss));
  }
  if (config.zLoss != 0)
    AuxiliaryLossOp::create(builder, "router_z",
                            dot(builder, logsumexp, logsumexp), APFloat(tokens),
                            APFloat(config.zLoss));
}
