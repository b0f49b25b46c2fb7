// SPDX-License-Identifier: Apache-2.0
//
// Replaces composite ops by their parts.
#include "lowering/kernels/Passes.h"

using namespace mlir;

namespace rota::lowering {
#define GEN_PASS_DEF_DECOMPOSE
#include "lowering/kernels/KernelPasses.h.inc"

namespace {
struct Decompose : impl::DecomposeBase<Decompose> {
  using DecomposeBase::DecomposeBase;

  void runOnOperation() override {
    SmallVector<mlir::rota::DecomposableOpInterface> ops;
    getOperation()->walk(
        [&](mlir::rota::DecomposableOpInterface op) { ops.push_back(op); });
    for (auto op : ops) {
      // The composite op's name becomes part of its kernel's name.
      StringAttr name =
          StringAttr::get(&getContext(), op->getName().stripDialect());
      op->setLoc(NameLoc::get(name, op->getLoc()));
      OpBuilder builder(op);
      auto results = op.decompose(builder);
      if (failed(results))
        return signalPassFailure();
      op->replaceAllUsesWith(*results);
      op->erase();
      ++decomposed;
    }
  }
};
} // namespace
} // namespace rota::lowering
