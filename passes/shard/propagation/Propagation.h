// SPDX-License-Identifier: Apache-2.0
//
// The fixpoint that divides the values and ops of one function.
#ifndef ROTA_PASSES_SHARD_PROPAGATION_PROPAGATION_H
#define ROTA_PASSES_SHARD_PROPAGATION_PROPAGATION_H

#include "passes/shard/propagation/FactorAxes.h"

namespace mlir::rota {

/// The origin of a dimension's division. The larger one wins a conflict.
enum class Priority : uint8_t { None, Border, Parameter };

/// The division of a value so far. A dimension that is `open` may be divided
/// further. Axes of `whole` divide no dimension: the value is the same along
/// them, or a sum.
struct ValueDivision {
  DimensionAxes dimensions;
  SmallVector<Priority> priorities;
  SmallVector<bool> open;
  AxisList whole;
};

/// The axes that the tensors of a rule together ask for on its factors.
struct Decision {
  FactorAxes factors;
  SmallVector<Priority> priorities; // per factor
};

class Propagation {
public:
  using RuleOf = FactorRule (*)(Operation *);

  /// Starts from the parameters' compute shardings, the `rota.sharding` of
  /// arguments and results, and `rota.constrain`. Ops are divided by the rules
  /// that `ruleOf` gives.
  explicit Propagation(func::FuncOp function, RuleOf ruleOf = divisionRule);

  /// Divides values until nothing changes: first along what parameters say,
  /// then what borders say, then the rest.
  void run();

  /// The axes of the factors of `op`. A conflict goes to the higher priority,
  /// then to the factor for which more bytes would move otherwise, then to the
  /// lower factor.
  FactorAxes factorsOf(Operation *op);
  /// The ways to divide `op`: that of factorsOf, and the others in which some
  /// factor has all axes that it wants, whatever other factors want.
  SmallVector<FactorAxes, 2> choicesOf(Operation *op);
  /// The sharding of a value, closed, with the unreduced axes of an argument.
  ShardingAttr shardingOf(Value value);

private:
  void seed();
  ShardingAttr sequenceSharding();
  ValueDivision &division(Value value);
  void fix(Value value, ShardingAttr sharding, Priority priority);
  Decision decide(Operation *op, const FactorRule &rule, Priority least,
                  std::optional<size_t> first = std::nullopt);
  bool update(Operation *op, Priority least);
  bool extend(Value value, ArrayRef<AxisList> dimensions,
              ArrayRef<Priority> priorities);
  bool extend(Value value, ShardingAttr sharding, Priority priority);

  func::FuncOp function;
  RuleOf ruleOf;
  MeshAttr mesh;
  llvm::DenseMap<Value, ValueDivision> divisions;
  llvm::DenseMap<Operation *, FactorRule> rules;
  // Ops whose last update is of the present divisions: another changes nothing.
  llvm::DenseSet<Operation *> settled;
};

} // namespace mlir::rota

#endif // ROTA_PASSES_SHARD_PROPAGATION_PROPAGATION_H
