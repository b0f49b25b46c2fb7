// SPDX-License-Identifier: Apache-2.0
//
// Groups the ops of a block into kernels.
#ifndef ROTA_LOWERING_KERNELS_ROWS_FUSION_H
#define ROTA_LOWERING_KERNELS_ROWS_FUSION_H

#include "lowering/kernels/rows/FusionNodes.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace rota::lowering {

/// Ops of a block as units: groups of nodes that become one kernel each, and
/// single ops that stay. Grouping is greedy: first consumers with their
/// producers, then groups that read the same rows, as long as no group needs a
/// result of itself through another unit, through a sum over rows, or from
/// another row. A value that would be stored for another group alone is
/// computed again there when that reads no more bytes than storing and loading
/// it moves.
class Fusion {
public:
  explicit Fusion(mlir::Block &block);

  struct Unit {
    llvm::SmallVector<unsigned> ops; // numbers, in the order of the block
    bool isGroup = false;
    RowSpace space;
  };

  const FusionNodes &getNodes() const { return nodes; }

  /// All units but the terminator, each after those that it needs.
  llvm::SmallVector<const Unit *> schedule() const;

  mlir::Operation *getOp(unsigned number) const { return ops[number]; }

  /// Whether something outside `unit` needs the result of its node `op`.
  bool isNeededOutside(mlir::Operation *op, const Unit &unit) const;

private:
  struct Edge {
    unsigned to;
    bool fusable;
  };

  void form(mlir::Block &block);
  bool repeatAcrossGroups();
  bool collectStoredInputs(mlir::Operation *op,
                           llvm::SmallSetVector<mlir::Value, 8> &inputs,
                           int &operations) const;
  bool isWorthRepeating(mlir::Operation *op) const;
  void addUnits(mlir::Block &block);
  void addEdges(mlir::Operation *op);
  void addEdge(mlir::Operation *producer, mlir::Operation *consumer,
               bool fusable);
  bool groupAlongEdges();
  bool groupReaders();
  bool tryMerge(unsigned a, unsigned b);
  bool canShareKernel(const Unit &a, const Unit &b) const;
  void findDepths();
  bool hasDetour(unsigned from, unsigned to);
  bool neededBeyond(mlir::Value value, const Unit &unit) const;

  FusionNodes nodes;
  // By number: nodes and ops that stay, in the order of the block.
  std::vector<mlir::Operation *> ops;
  llvm::DenseMap<mlir::Operation *, unsigned> numbers;
  std::vector<llvm::SmallVector<Edge>> users;
  std::vector<unsigned> unitOf;
  std::vector<Unit> units;      // merged ones are empty
  std::vector<unsigned> depths; // by unit
  // By unit: the last search for a detour that came to it.
  std::vector<unsigned> visited;
  unsigned searches = 0; // so far
  // Nodes that read a value row by row.
  llvm::MapVector<mlir::Value, llvm::SmallVector<unsigned>> readers;
};

} // namespace rota::lowering

#endif // ROTA_LOWERING_KERNELS_ROWS_FUSION_H
