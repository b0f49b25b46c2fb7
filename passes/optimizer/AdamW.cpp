// SPDX-License-Identifier: Apache-2.0
//
// AdamW: Loshchilov and Hutter, "Decoupled weight decay regularization", ICLR
// 2019, algorithm 2.
#include "passes/optimizer/Optimizers.h"

using namespace mlir;
using namespace mlir::rota;

/// (m - (1 - beta)*m) + (1 - beta)*x, the mean that forgets at the rate beta.
/// Near 1, beta*m + (1 - beta)*x would forget at the rate of the rounded beta:
/// with 0.9999999 in f32, the mean of a constant x would tend to 0.84*x. And
/// m + (1 - beta)*(x - m) would lose a small x behind a large m, all of it
/// where beta is 0.
static Value runningMean(UpdateBuilder &b, Value mean, Value value,
                         StringRef beta) {
  Value rest = b.complement(beta);
  Value updated = b.add(b.sub(mean, b.mul(rest, mean)), b.mul(rest, value));
  b.setState(mean, updated);
  return updated;
}

static Value buildUpdate(UpdateBuilder &b) {
  Value p = b.parameter(), g = b.gradient();
  Value m = runningMean(b, b.state("first_moment"), g, "beta1");
  Value v = runningMean(b, b.state("second_moment"), b.mul(g, g), "beta2");
  Value root = b.sqrt(b.div(v, b.correction("beta2")));
  Value step =
      b.div(b.div(m, b.correction("beta1")), b.add(root, b.option("epsilon")));
  if (b.decays())
    step = b.add(step, b.mul(b.option("weight-decay"), p));
  return b.sub(p, b.mul(b.learningRate(), step));
}

static constexpr double kBelowOne = 0.999999999, kAny = 1e300;

static const OptimizerSpec::Option options[] = {
    {"beta1", 0.9, 0.0, kBelowOne, "Decay of the first moment"},
    {"beta2", 0.95, 0.0, kBelowOne, "Decay of the second moment"},
    {"epsilon", 1e-8, 0.0, kAny, "Added to the root"},
    {"weight-decay", 0.1, 0.0, kAny,
     "Decay of tensors of two or more dimensions"}};

const OptimizerSpec rota::adamW = {"adamw", options, buildUpdate};
