// SPDX-License-Identifier: Apache-2.0
//
// Values that are parts of others in memory.
#ifndef ROTA_LOWERING_EXECUTABLE_PARTPLACES_H
#define ROTA_LOWERING_EXECUTABLE_PARTPLACES_H

#include "ir/rota/Rota.h"

#include "llvm/ADT/DenseSet.h"

namespace rota::lowering {

/// The parts of `rota.split` and `rota.concat` along the first dimension that
/// is larger than 1: stretches of the whole tensor's bytes. A split reads
/// nothing, its parts are where the whole is; what alone a concat reads is
/// computed where the whole is. So both need no code. This holds for all parts
/// of an op or for none. What a collective reads that works in place lies where
/// its result does.
class PartPlaces {
public:
  /// The parts in straight-line code.
  explicit PartPlaces(llvm::ArrayRef<mlir::Operation *> ops);

  /// Whether the op needs no code.
  bool isPlaced(mlir::Operation *op) const { return placed.contains(op); }
  /// Whether the value, or what it views, is a part of another.
  bool isPart(mlir::Value value) const {
    return parts.contains(mlir::rota::viewedValue(value));
  }

  /// Bytes after the start of a value that is neither a view nor a part.
  struct Place {
    mlir::Value root;
    int64_t offset = 0;
  };
  Place placeOf(mlir::Value value) const;
  mlir::Value rootOf(mlir::Value value) const { return placeOf(value).root; }

  /// The first op that computes the value or a part of it.
  mlir::Operation *firstWriter(mlir::Value value) const;

private:
  void addSplit(mlir::rota::SplitOp split);
  void addConcat(mlir::rota::ConcatOp concat);

  llvm::DenseMap<mlir::Value, Place> parts; // in the next larger value
  // The first writer of each concat that needs no code.
  llvm::DenseMap<mlir::Value, mlir::Operation *> writers;
  llvm::DenseSet<mlir::Operation *> placed;
};

} // namespace rota::lowering

#endif // ROTA_LOWERING_EXECUTABLE_PARTPLACES_H
