// SPDX-License-Identifier: Apache-2.0
//
// When the values of a function are read.
#ifndef ROTA_LOWERING_EXECUTABLE_VALUEUSES_H
#define ROTA_LOWERING_EXECUTABLE_VALUEUSES_H

#include "ir/rota/Rota.h"

namespace rota::lowering {

/// The uses of each value, those of its views included.
class ValueUses {
public:
  /// Of straight-line code.
  explicit ValueUses(llvm::ArrayRef<mlir::Operation *> ops) {
    for (auto [number, op] : llvm::enumerate(ops))
      for (mlir::Value operand : op->getOperands()) {
        Uses &uses = values[mlir::rota::viewedValue(operand)];
        uses.last = int(number);
        uses.lastUser = op;
        uses.readers += !llvm::isa<mlir::rota::ViewOpInterface>(op);
      }
  }

  /// The number of the last op that uses the value; -1: none does.
  int last(mlir::Value value) const { return lookup(value).last; }
  /// That op; null: none does.
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
  Uses lookup(mlir::Value value) const {
    return values.lookup(mlir::rota::viewedValue(value));
  }

  llvm::DenseMap<mlir::Value, Uses> values;
};

} // namespace rota::lowering

#endif // ROTA_LOWERING_EXECUTABLE_VALUEUSES_H
