// SPDX-License-Identifier: Apache-2.0
//
// When the values of a function are read.
#ifndef ROTA_LOWERING_EXECUTABLE_VALUEUSES_H
#define ROTA_LOWERING_EXECUTABLE_VALUEUSES_H

#include "ir/rota/Rota.h"

namespace rota::lowering {

/// The uses of each value, those of its views included. A transfer that runs
/// beside other ops reads its operand until its result is first used.
class ValueUses {
public:
  /// The uses in straight-line code.
  explicit ValueUses(llvm::ArrayRef<mlir::Operation *> ops) {
    for (auto [number, op] : llvm::enumerate(ops))
      for (mlir::Value operand : op->getOperands()) {
        Uses &uses = values[mlir::rota::viewedValue(operand)];
        uses.last = int(number);
        uses.lastUser = op;
        uses.readers += !llvm::isa<mlir::rota::ViewOpInterface>(op);
        first.try_emplace(mlir::rota::viewedValue(operand), int(number));
      }
    for (mlir::Operation *op : ops)
      if (llvm::isa<mlir::rota::PermuteOp>(op))
        extend(op, ops);
  }

  /// The number of the first op that uses the value; -1: none does.
  int firstUse(mlir::Value value) const {
    auto place = first.find(mlir::rota::viewedValue(value));
    return place == first.end() ? -1 : place->second;
  }

  /// The number of the last op that uses the value; -1: none does.
  int last(mlir::Value value) const { return lookup(value).last; }
  /// The last op that uses the value; null: none does.
  mlir::Operation *lastUser(mlir::Value value) const {
    return lookup(value).lastUser;
  }
  /// Whether one operand of one op reads the value.
  bool hasOneReader(mlir::Value value) const {
    return lookup(value).readers == 1;
  }

private:
  struct Uses {
    int last = -1;
    mlir::Operation *lastUser = nullptr;
    unsigned readers = 0; // operands of ops other than views
  };
  void extend(mlir::Operation *transfer,
              llvm::ArrayRef<mlir::Operation *> ops) {
    Uses &uses = values[mlir::rota::viewedValue(transfer->getOperand(0))];
    if (int end = firstUse(transfer->getResult(0)); end > uses.last) {
      uses.last = end;
      uses.lastUser = ops[end];
    }
  }

  Uses lookup(mlir::Value value) const {
    return values.lookup(mlir::rota::viewedValue(value));
  }

  llvm::DenseMap<mlir::Value, Uses> values;
  llvm::DenseMap<mlir::Value, int> first; // number of an op
};

} // namespace rota::lowering

#endif // ROTA_LOWERING_EXECUTABLE_VALUEUSES_H
