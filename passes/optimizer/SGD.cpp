// SPDX-License-Identifier: Apache-2.0
//
// Gradient descent with momentum: Sutskever et al., "On the importance of
// initialization and momentum in deep learning", ICML 2013, in the form of
// torch.optim.SGD, with decoupled weight decay.
#include "passes/optimizer/Optimizers.h"

using namespace mlir;
using namespace mlir::rota;

static Value buildSGD(UpdateBuilder &b) {
  Value g = b.gradient();
  if (b.settings().values.lookup(kMomentum) == 0.0)
    return b.descend(g);
  Value decayed = b.mul(b.option(kMomentum), b.state("momentum"));
  Value buffer = b.add(decayed, g);
  b.setState("momentum", buffer);
  return b.descend(b.settings().nesterov
                       ? b.add(g, b.mul(b.option(kMomentum), buffer))
                       : buffer);
}

static const OptimizerSpec::Option options[] = {
    {kMomentum, 0.0, 0.0, kBelowOne,
     "Part of the momentum that a step keeps (sgd: 0, muon: 0.95)",
     /*isFixedAtZero=*/true},
    kDecay};
static constexpr StringLiteral settings[] = {"nesterov"};

const OptimizerSpec mlir::rota::sgd = {
    "sgd",   options, settings, /*isNesterov=*/false, /*knowsMatrices=*/false,
    buildSGD};
