// SPDX-License-Identifier: Apache-2.0
//
// The functions of a model: their names, and the role of each argument and
// result. Positions are known here alone; builders, passes, lowering and tests
// ask by role.
#ifndef ROTA_IR_ROTA_MODEL_ROLES_H
#define ROTA_IR_ROTA_MODEL_ROLES_H

#include "ir/rota/Rota.h"

#include <map>

namespace mlir::rota {

/// The part of a model that a function belongs to. Functions of a layer stand
/// in their `rota.layer`, the others in the module.
enum class ModelPart : uint8_t { Embed, Layer, Loss };

/// The function of a part. Model builders make `Forward`, `differentiate` makes
/// the others: either `Backward` or the two halves of a split one.
enum class FunctionKind : uint8_t {
  Forward,
  Backward,
  BackwardInput,
  BackwardWeight,
  LossWeight, // with auxiliary losses alone
  Probe       // any function of the module that the table does not name
};

/// The role of an argument or of a result.
enum class Role : uint8_t {
  Tokens,            // data that `embed` reads
  Targets,           // data that `loss` reads
  InputActivation,   // enters a layer or the loss
  OutputActivation,  // leaves a layer or `embed`
  InputCotangent,    // cotangent of the input activation
  OutputCotangent,   // cotangent of the output activation
  Residual,          // saved by `forward` for the backward; any number
  CotangentResidual, // saved by `backward_input` for `backward_weight`,
                     // likewise
  LossSum,           // sum over one microbatch
  LossWeight,        // weight of one microbatch
  LossTerm,          // a further sum of one microbatch; any number
  NamedValue,        // result of a probe
  Unknown            // not described by the table
};

/// True for activations and their cotangents: in the whole model they have one
/// type and one sharding.
bool isActivation(Role role);
/// True for the parts of a microbatch's data.
bool isData(Role role);
/// True for values that one function of a part saves for another one.
bool isResidual(Role role);
/// True for roles of which a list of arguments or results has any number,
/// consecutive; it has one of each other role.
bool isVariadic(Role role);

/// One row of the table of functions. The lists hold each role once. A list of
/// residuals has those that wait in the device's memory first, then those that
/// wait in the host's, which are marked `rota.offload`; an input activation of
/// a backward function may be marked, too.
struct Signature {
  llvm::StringLiteral name;
  ModelPart part;
  FunctionKind kind;
  SmallVector<Role, 4> arguments, results;
};

/// The table of functions. A function that makes a value comes before those
/// that take it.
ArrayRef<Signature> signatures();
/// The row of that function, which must be in the table.
const Signature &signatureOf(ModelPart part, FunctionKind kind);
/// The row of `function` by its name and its parent; for a function that the
/// table does not name that of probes.
const Signature &signatureOf(func::FuncOp function);

/// The functions of the table that stand in `scope`, a `rota.layer` or the
/// module, in the order of the table.
SmallVector<func::FuncOp> functionsIn(Operation *scope);
/// The function of `part` and `kind` in `scope`; null when it is not there.
func::FuncOp functionIn(Operation *scope, ModelPart part, FunctionKind kind);

/// An argument or a result of a function.
struct FunctionPort {
  func::FuncOp function;
  bool isResult = false;
  unsigned index = 0;

  bool operator==(const FunctionPort &other) const {
    return function == other.function && isResult == other.isResult &&
           index == other.index;
  }
  Type type() const;
  /// The argument, or the operand of the return. The function has a body.
  Value value() const;
  /// `rota.sharding`; null where there is none.
  ShardingAttr sharding() const;
  void setSharding(ShardingAttr sharding) const;
  /// `rota.offload`: the value waits in the host's memory.
  bool isOffloaded() const;
  void setOffloaded() const;
  /// `rota.loss_term`; null where there is none.
  LossTermAttr lossTerm() const;
  void setLossTerm(LossTermAttr term) const;
  /// "argument 1 of 'backward'".
  std::string describe() const;
};

/// The roles of one function's arguments and results. A function with fewer
/// values than its row has roles misses the last ones; surplus values are
/// `Role::Unknown`.
class FunctionRoles {
public:
  explicit FunctionRoles(func::FuncOp function);

  const Signature &signature() const { return row; }
  /// By index.
  ArrayRef<Role> arguments() const { return argumentRoles; }
  ArrayRef<Role> results() const { return resultRoles; }
  /// The arguments or results with `role`, in order.
  SmallVector<FunctionPort> arguments(Role role) const;
  SmallVector<FunctionPort> results(Role role) const;
  /// The one with that role, which must be there.
  FunctionPort argument(Role role) const;
  FunctionPort result(Role role) const;

private:
  func::FuncOp function;
  const Signature &row;
  SmallVector<Role> argumentRoles, resultRoles;
};

/// The arguments or results that the other values of that role in `scope` must
/// be like: the results of the function that makes them or, where none does,
/// the arguments of the first function that takes them. Empty when no function
/// has that role.
SmallVector<FunctionPort> sourcesIn(Operation *scope, Role role);

/// Two places of one value: `source` is its place of `sourcesIn`.
struct RoleEdge {
  Role role;
  FunctionPort source, user;
};

/// The edges from the sources of `scope` to all other places of their roles;
/// those of one source are consecutive. Places whose type is another one have
/// no edge.
SmallVector<RoleEdge> roleEdgesIn(Operation *scope);
/// The edges of residuals: from a result to an argument.
SmallVector<RoleEdge> residualEdgesIn(Operation *scope);

/// Checks that a function which a model builder made has the arguments and
/// results of its row; of variadic ones it may have terms of the loss alone.
/// Emits an error and fails otherwise.
LogicalResult verifyCountsAsBuilt(func::FuncOp function);

/// Values of functions by role.
template <typename T> class RoleValues {
public:
  RoleValues() = default;
  RoleValues(std::initializer_list<std::pair<Role, T>> list) {
    for (const auto &[role, value] : list)
      set(role, value);
  }

  ArrayRef<T> all(Role role) const {
    auto found = values.find(role);
    return found == values.end() ? ArrayRef<T>() : ArrayRef<T>(found->second);
  }
  /// The value of that role, of which there must be one.
  const T &one(Role role) const {
    assert(all(role).size() == 1 && "expected one value of the role");
    return all(role).front();
  }
  void set(Role role, T value) {
    values[role].clear();
    values[role].push_back(std::move(value));
  }
  void setAll(Role role, ArrayRef<T> list) {
    values[role] = SmallVector<T>(list);
  }
  /// Replaces the values of `roles`, which are the roles of `list` by index.
  template <typename Range> void assign(ArrayRef<Role> roles, Range &&list) {
    for (Role role : roles)
      values[role].clear();
    for (auto [role, value] : llvm::zip_equal(roles, list))
      values[role].push_back(value);
  }
  /// The values of `roles`, a list of a signature, one after the other.
  SmallVector<T> inOrder(ArrayRef<Role> roles) const {
    SmallVector<T> list;
    for (Role role : roles)
      llvm::append_range(list, all(role));
    return list;
  }

private:
  std::map<Role, SmallVector<T>> values;
};

} // namespace mlir::rota

#endif // ROTA_IR_ROTA_MODEL_ROLES_H
