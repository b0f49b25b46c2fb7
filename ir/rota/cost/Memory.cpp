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

/// Whether a value is returned by its function or added to a gradient.
static bool isKept(Value value) {
  return llvm::any_of(value.getUsers(), [](Operation *user) {
    return isa<func::ReturnOp, AccumulateOp>(user) ||
           (isa<ViewOpInterface>(user) && isKept(user->getResult(0)));
  });
}

/// Whether a cache holds what `op` reads: its function has used the tensor
/// before, and not many bytes since.
static bool isNear(const Machine &machine, Operation *op, Value value) {
  if (machine.cacheBytes == 0)
    return false;
  value = viewedValue(value);
  double between = 0;
  for (Operation *before = op->getPrevNode();
       before && between <= Machine::kBytesBetween * machine.cacheBytes;
       before = before->getPrevNode()) {
    if (isa<ReadOp, AccumulateOp, ViewOpInterface>(before))
      continue;
    for (ValueRange values :
         {ValueRange(before->getOperands()), ValueRange(before->getResults())})
      for (Value other : values) {
        if (viewedValue(other) == value)
          return true;
        between += bytesOf(other);
      }
  }
  return false;
}

/// Seconds of transfers of so many bytes from or to a host's memory. The rate
/// is that of additions, whose three tensors take four transfers, since a line
/// is read before it is written.
static double secondsOfTransfers(const Machine &machine, double bytes) {
  return bytes * 3 / 4 / machine.reachedMemory(INFINITY);
}

/// Seconds on a host, whose caches keep what a function itself has just made
/// or read.
static double secondsOnHost(const Machine &machine, Operation *op,
                            const Cost &cost) {
  if (machine.updatedPerSecond > 0 && isOfUpdate(op))
    return cost.bytes() / machine.updatedPerSecond;
  auto shareInCache = [&](ValueRange values,
                          llvm::function_ref<bool(Value)> isInCache) {
    double bytes = 0, inCache = 0;
    for (Value value : values) {
      bytes += bytesOf(value);
      if (isInCache(value))
        inCache += bytesOf(value);
    }
    return bytes > 0 ? inCache / bytes : 0;
  };
  double read = shareInCache(op->getOperands(), [&](Value value) {
    return isNear(machine, op, value);
  });
  double written = shareInCache(op->getResults(), [&](Value value) {
    return bytesOf(value) <= machine.cacheBytes && !isKept(value);
  });
  double cached = cost.bytesRead * read + cost.bytesWritten * written;
  return secondsOfTransfers(machine,
                            cost.bytesRead * (1 - read) +
                                2 * cost.bytesWritten * (1 - written)) +
         (cached > 0 ? cached / machine.cacheBytesPerSecond : 0);
}

double Machine::secondsOfKeeping(Operation *op) const {
  if (cores == 0 || cacheBytes == 0)
    return 0;
  double kept = 0;
  for (Value result : op->getResults())
    kept += isKept(result) ? bytesOf(result) : 0;
  return secondsOfTransfers(*this, 2 * kept);
}

double Machine::secondsOfMemory(Operation *op, const Cost &cost) const {
  return cores > 0 ? secondsOnHost(*this, op, cost)
                   : cost.bytes() / reachedMemory(cost.bytes());
}
