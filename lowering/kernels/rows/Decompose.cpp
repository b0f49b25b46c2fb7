// SPDX-License-Identifier: Apache-2.0
//
// Replaces composite ops by their parts, and sums over dimensions in the middle
// by products with ones: kernels sum over the first or the last dimensions.
#include "ir/rota/Rules.h"
#include "lowering/kernels/Passes.h"

using namespace mlir;

namespace rota::lowering {
#define GEN_PASS_DEF_DECOMPOSE
#include "lowering/kernels/KernelPasses.h.inc"

using mlir::rota::BroadcastOp;
using mlir::rota::EinsumOp;
using mlir::rota::ReduceKind;
using mlir::rota::ReduceOp;

/// Whether the op sums over one dimension that is neither first nor last.
static bool sumsInside(ReduceOp op) {
  int64_t rank = cast<RankedTensorType>(op.getInput().getType()).getRank();
  return op.getKind() == ReduceKind::Sum && op.getDims().size() == 1 &&
         op.getDims().front() != 0 && op.getDims().front() != rank - 1;
}

/// A sum over c of [a, c, d] as the product "acd,ac->ad" with ones, one matrix
/// product for each a.
static void replaceSumInside(ReduceOp op) {
  OpBuilder builder(op);
  auto type = cast<RankedTensorType>(op.getInput().getType());
  int64_t dim = op.getDims().front();
  std::string letters;
  for (int64_t i = 0; i < type.getRank(); ++i)
    letters += char('a' + i);
  std::string ones = letters.substr(0, dim + 1), kept = letters;
  kept.erase(dim, 1);
  auto scalar = RankedTensorType::get({}, type.getElementType());
  Value one = mlir::rota::splatConstant(builder, op.getLoc(), scalar, 1.0);
  Value row = BroadcastOp::create(
      builder, op.getLoc(), type.clone(type.getShape().take_front(dim + 1)),
      one, ArrayRef<int64_t>{});
  Value sum =
      EinsumOp::create(builder, op.getLoc(), op.getType(),
                       letters + "," + ones + "->" + kept, op.getInput(), row);
  op.replaceAllUsesWith(sum);
  op.erase();
}

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
    SmallVector<ReduceOp> sums;
    getOperation()->walk([&](ReduceOp op) {
      if (sumsInside(op))
        sums.push_back(op);
    });
    llvm::for_each(sums, replaceSumInside);
    decomposed += sums.size();
  }
};
} // namespace
} // namespace rota::lowering
