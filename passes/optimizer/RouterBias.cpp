// SPDX-License-Identifier: Apache-2.0
//
// Balance of experts without a loss: Wang et al., "Auxiliary-loss-free load
// balancing strategy for mixture-of-experts", 2024, algorithm 1; DeepSeek-AI,
// "DeepSeek-V3 technical report", 2024, section 2.1.2. With the choices c[x] of
// expert x in a step,
//   bias[x] += rate * sign(mean over experts of c - c[x])
// No moments, no decay, no clipping, and no learning rate.
#include "passes/optimizer/Optimizers.h"

using namespace mlir;
using namespace mlir::rota;

/// The gradient is the choices, as `rota.route` says. They and their sum are
/// integers, exact in f32 up to 2^24; a quotient is rounded once, which keeps
/// the order of integers.
Value mlir::rota::buildRouterBias(UpdateBuilder &b) {
  Value load = b.total();
  RankedTensorType type = b.form().type;
  Value sum = ReduceOp::create(b, type.clone(ArrayRef<int64_t>{}),
                               ReduceKind::Sum, load, ArrayRef<int64_t>{0});
  Value all = BroadcastOp::create(b, type, sum, ArrayRef<int64_t>{});
  Value mean = b.div(all, b.constant(type, double(type.getDimSize(0))));
  auto isMore = [&](Value more, Value less) -> Value {
    return arith::CmpFOp::create(b, arith::CmpFPredicate::OGT, more, less);
  };
  auto select = [&](Value condition, double yes, Value no) -> Value {
    return arith::SelectOp::create(b, condition, b.constant(type, yes), no);
  };
  double rate = b.form().biasRate;
  Value step = select(isMore(mean, load), rate,
                      select(isMore(load, mean), -rate, b.constant(type, 0.0)));
  return b.add(b.parameter(), step);
}
