// SPDX-License-Identifier: Apache-2.0
//
// The list of optimizers.
#include "passes/optimizer/Optimizers.h"

using namespace mlir;
using namespace mlir::rota;

static const OptimizerSpec *const optimizers[] = {&adamW};

const OptimizerSpec *rota::findOptimizer(StringRef name) {
  for (const OptimizerSpec *optimizer : optimizers)
    if (optimizer->name == name)
      return optimizer;
  return nullptr;
}

std::string rota::optimizerNames() {
  return llvm::join(llvm::map_range(optimizers,
                                    [](const OptimizerSpec *optimizer) {
                                      return optimizer->name;
                                    }),
                    ", ");
}
