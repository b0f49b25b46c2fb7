// SPDX-License-Identifier: Apache-2.0
//
// When the values of a function are read.
#ifndef ROTA_LOWERING_EXECUTABLE_VALUEUSES_H
#define ROTA_LOWERING_EXECUTABLE_VALUEUSES_H

#include "lowering/executable/PartPlaces.h"

namespace rota::lowering {

/// The uses of each value, those of its views and parts included; what needs no
/// code uses nothing. Collectives run beside other ops: they use their operands
/// until their result is first used.
class ValueUses {
public:
  /// The uses in straight-line code. `ops` must outlive the object.
  ValueUses(llvm::ArrayRef<mlir::Operation *> ops, const PartPlaces &places);

  /// The number of the first op that uses the value; -1: none does.
  int firstUse(mlir::Value value) const { return lookup(value).first; }

  /// The number of the last op that has the value as an operand; -1: none.
  int lastRead(mlir::Value value) const { return lookup(value).lastRead; }

  /// The number of the last op that runs while the value is used, the use by
  /// the transfer `except` not counted after its start; -1: none does.
  int last(mlir::Value value, mlir::Operation *except = nullptr) const {
    const Uses &uses = lookup(value);
    int last = uses.lastRead;
    for (auto [transfer, end] : uses.transfers)
      if (transfer != except)
        last = std::max(last, end);
    return last;
  }
  /// The op of number `last`; null: none runs.
  mlir::Operation *lastUser(mlir::Value value,
                            mlir::Operation *except = nullptr) const {
    int number = last(value, except);
    return number < 0 ? nullptr : ops[number];
  }
  /// Whether one operand of one op other than a view has the value.
  bool hasOneReader(mlir::Value value) const {
    return lookup(value).readers == 1;
  }

private:
  struct Uses {
    int first = -1, lastRead = -1;
    unsigned readers = 0; // operands
    // The transfers that read the value, and the first uses of their results.
    llvm::SmallVector<std::pair<mlir::Operation *, int>, 1> transfers;

    void add(const Uses &other);
    void keepWith(const Uses &other);
  };
  Uses &usesOf(mlir::Value value) {
    return values[mlir::rota::viewedValue(value)];
  }
  void addUsesOfParts(mlir::Operation *op);

  const Uses &lookup(mlir::Value value) const {
    static const Uses none;
    auto found = values.find(mlir::rota::viewedValue(value));
    return found == values.end() ? none : found->second;
  }

  llvm::ArrayRef<mlir::Operation *> ops;
  llvm::DenseMap<mlir::Value, Uses> values;
};

} // namespace rota::lowering

#endif // ROTA_LOWERING_EXECUTABLE_VALUEUSES_H
