// SPDX-License-Identifier: Apache-2.0
//
// The fixpoint that divides the values and ops of one function.
#ifndef ROTA_PASSES_SHARD_PROPAGATION_PROPAGATION_H
#define ROTA_PASSES_SHARD_PROPAGATION_PROPAGATION_H

#include "passes/shard/propagation/FactorAxes.h"

namespace mlir::rota {

/// Who says how a dimension is divided; the larger counts where two disagree.
enum class Priority : uint8_t { None, Border, Parameter };

/// How a value is divided so far. Whether a dimension may be divided further is
/// `open`; axes of `whole` divide no dimension: the value is the same along
/// them, or a sum.
struct ValueDivision {
  DimensionAxes dimensions;
  SmallVector<Priority> priorities;
  SmallVector<bool> open;
  AxisList whole;
};

/// What a rule's tensors together say of its factors.
struct Decision {
  FactorAxes factors;
  SmallVector<Priority> priorities; // per factor
};

class Propagation {
public:
  /// Starts from the parameters' compute shardings, the `rota.sharding` of
  /// arguments and results, and `rota.constrain`.
  explicit Propagation(func::FuncOp function);

  /// Divides values until nothing changes: first along what parameters say,
  /// then what borders say, then the rest.
  void run();

  /// How the factors of `op` are divided; by rank of who says so, then by bytes
  /// moved otherwise, then by number.
  FactorAxes factorsOf(Operation *op);
  /// How a value is divided, closed; what an argument is a sum over stays.
  ShardingAttr shardingOf(Value value);

private:
  void seed();
  ValueDivision &division(Value value);
  void fix(Value value, ShardingAttr sharding, Priority priority);
  Decision decide(Operation *op, const FactorRule &rule, Priority least);
  bool update(Operation *op, Priority least);
  bool extend(Value value, ArrayRef<AxisList> dimensions,
              ArrayRef<Priority> priorities);
  bool extend(Value value, ShardingAttr sharding, Priority priority);

  func::FuncOp function;
  MeshAttr mesh;
  llvm::DenseMap<Value, ValueDivision> divisions;
  llvm::DenseMap<Operation *, FactorRule> rules;
};

} // namespace mlir::rota

#endif // ROTA_PASSES_SHARD_PROPAGATION_PROPAGATION_H
