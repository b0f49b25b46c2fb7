// SPDX-License-Identifier: Apache-2.0
//
// What it takes to read and write the tensors of an op.
#include "ir/rota/OpFamily.h"
#include "ir/rota/cost/Machine.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include "llvm/ADT/STLExtras.h"

#include <cmath>

using namespace mlir;
using namespace mlir::rota;

/// Whether a kernel is part of a parameter's update, which writes over the
/// parameter and its states.
static bool isOfUpdate(Operation *op) {
  auto function = op->getParentOfType<func::FuncOp>();
  if (!isa<LaunchOp>(op) || !function)
    return false;
  StringRef scalar = RotaDialect::ScalarAttrHelper::getNameStr();
  return llvm::any_of(llvm::seq(function.getNumArguments()), [&](unsigned i) {
    return bool(function.getArgAttr(i, scalar));
  });
}

static bool isReturned(Value value) {
  return llvm::any_of(value.getUsers(), [](Operation *user) {
    return isa<func::ReturnOp>(user) ||
           (isa<ViewOpInterface>(user) && isReturned(user->getResult(0)));
  });
}

/// Whether a value of a function is made or read outside it: a parameter, or
/// what waits from one function to another. No cache holds it that long.
static bool isShared(Value value) {
  while (auto view = value.getDefiningOp<ViewOpInterface>())
    value = view.getViewedOperand();
  return isa<BlockArgument>(value) || value.getDefiningOp<ReadOp>() ||
         isReturned(value);
}

/// Seconds on a host, whose caches keep what a function itself has just made.
static double secondsOnHost(const Machine &machine, Operation *op,
                            const Cost &cost) {
  if (machine.updatedPerSecond > 0 && isOfUpdate(op))
    return cost.bytes() / machine.updatedPerSecond;
  auto shareInCache = [&](ValueRange values) {
    double bytes = 0, inCache = 0;
    for (Value value : values) {
      bytes += bytesOf(value);
      if (bytesOf(value) <= machine.cacheBytes && !isShared(value))
        inCache += bytesOf(value);
    }
    return bytes > 0 ? inCache / bytes : 0;
  };
  double read = shareInCache(op->getOperands()),
         written = shareInCache(op->getResults()),
         cached = cost.bytesRead * read + cost.bytesWritten * written;
  // A line is read before it is written. The rate is that of additions, with
  // three tensors for four transfers.
  double inMemory =
      (cost.bytesRead * (1 - read) + 2 * cost.bytesWritten * (1 - written)) *
      3 / 4;
  return inMemory / machine.reachedMemory(INFINITY) +
         (cached > 0 ? cached / machine.cacheBytesPerSecond : 0);
}

double Machine::secondsOfMemory(Operation *op, const Cost &cost) const {
  return cores > 0 ? secondsOnHost(*this, op, cost)
                   : cost.bytes() / reachedMemory(cost.bytes());
}
