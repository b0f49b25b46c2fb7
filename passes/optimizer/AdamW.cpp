// SPDX-License-Identifier: Apache-2.0
//
// AdamW: Loshchilov and Hutter, "Decoupled weight decay regularization", ICLR
// 2019, algorithm 2.
#include "passes/optimizer/Optimizers.h"

using namespace mlir;
using namespace mlir::rota;

Value mlir::rota::buildAdamW(UpdateBuilder &b) {
  Value g = b.gradient();
  Value m = b.runningMean("first_moment", g, kBeta1.name);
  Value v = b.runningMean("second_moment", b.mul(g, g), kBeta2.name);
  Value root = b.sqrt(b.div(v, b.correction(kBeta2.name)));
  return b.descend(b.div(b.div(m, b.correction(kBeta1.name)),
                         b.add(root, b.option(kEpsilon.name))));
}

static const OptimizerSpec::Option options[] = {kBeta1, kBeta2, kEpsilon,
                                                kDecay};

const OptimizerSpec mlir::rota::adamW = {
    "adamw",   options, {}, /*isNesterov=*/false, /*knowsMatrices=*/false,
    buildAdamW};
