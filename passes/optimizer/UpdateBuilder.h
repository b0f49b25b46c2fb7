// SPDX-License-Identifier: Apache-2.0
//
// Builds the body of an update function.
#ifndef ROTA_PASSES_OPTIMIZER_UPDATEBUILDER_H
#define ROTA_PASSES_OPTIMIZER_UPDATEBUILDER_H

#include "ir/rota/model/Update.h"
#include "passes/optimizer/Passes.h"

#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::rota {

/// The properties of a parameter on which its update depends. Parameters of
/// equal forms have the same functions.
struct UpdateForm {
  RankedTensorType type; // f32, padded
  ShardingAttr sharding; // null: there is no mesh
  Type compute;          // in which functions read the parameter
  Type gradient;         // in which gradients are accumulated
  // Factors of the parameter's group, for the learning rate and the weight
  // decay with. 0: it does not decay.
  double rate = 1.0, decay = 1.0;
  // Rows and columns without padding of a matrix of a layer, or of each matrix
  // where leading dimensions count them; 0 for other parameters, and where the
  // optimizer does not ask for them.
  int64_t rows = 0, columns = 0;
  // Heads that the optimizer takes apart: the rows, or the columns, are those
  // of one head after the other. 1: the matrix is one.
  int64_t rowHeads = 1, columnHeads = 1;
  // Rate of a bias of choices that balances experts; 0: the optimizer's.
  double biasRate = 0.0;

  bool isMatrix() const { return rows > 0; }
  /// The type of the accumulated gradient.
  RankedTensorType accumulated() const {
    return RankedTensorType::get(type.getShape(), gradient);
  }
  bool operator==(const UpdateForm &) const = default;
};

/// The options of build-updates, and the value of each of the optimizer's own
/// options at compile time.
struct UpdateSettings : BuildUpdatesOptions {
  llvm::StringMap<double> values;
};

/// Any op of a model may be created, elementwise or not: values are whole
/// tensors, and the shard phase divides them as it divides the model's.
/// Arguments are added when they are first asked for.
class UpdateBuilder : public ImplicitLocOpBuilder {
public:
  /// Starts `function`, without arguments yet. `settings` are kept by
  /// reference.
  UpdateBuilder(Location loc, func::FuncOp function, const UpdateForm &form,
                const UpdateSettings &settings);

  const UpdateForm &form() const { return described; }
  const UpdateSettings &settings() const { return chosen; }

  /// The parameter's value before the step; f32.
  Value parameter() { return body->getArgument(UpdateFunction::parameter); }
  /// Its gradient: a mean over the step, clipped.
  Value gradient();
  /// The sum of the gradients of the step's microbatches, neither divided nor
  /// clipped.
  Value total() {
    return convert(body->getArgument(UpdateFunction::gradient),
                   described.type.getElementType());
  }

  /// The state of that name, f32 of the parameter's shape; `initial` everywhere
  /// before the first step. Its new value must be given with `setState`, which
  /// rounds it to the type of states.
  Value state(StringRef name, double initial = 0.0);
  void setState(StringRef name, Value updated) { updates[name] = updated; }

  /// p - rate * (direction + decay * p): the parameter after the step, with
  /// decoupled weight decay where it decays.
  Value descend(Value direction);

  /// x, 1 - x and, in step t, 1 - x^t of an option's value x: the same numbers
  /// for all elements, computed by the trainer in each step. Where x is near 1,
  /// the latter two cannot be computed from x in f32.
  Value option(StringRef name) { return scalar(ScalarKind::Option, name); }
  Value complement(StringRef name) {
    return scalar(ScalarKind::Complement, name);
  }
  Value correction(StringRef name) {
    return scalar(ScalarKind::Correction, name);
  }

  Value add(Value a, Value b) { return create<arith::AddFOp>(a, b); }
  Value sub(Value a, Value b) { return create<arith::SubFOp>(a, b); }
  Value mul(Value a, Value b) { return create<arith::MulFOp>(a, b); }
  Value div(Value a, Value b) { return create<arith::DivFOp>(a, b); }
  Value sqrt(Value a) { return create<math::SqrtOp>(a); }
  /// A tensor of type `like` with that value in every element.
  Value constant(Type like, double value);
  /// `value` in another type: rounded to it or exact.
  Value convert(Value value, Type element);

  /// (m - (1 - x)*m) + (1 - x)*value, the mean that forgets at the rate x of
  /// the option. Near 1, x*m + (1 - x)*value would forget at the rate of the
  /// rounded x: with 0.9999999 in f32, the mean of a constant would tend to
  /// 0.84 of it. And m + (1 - x)*(value - m) would round away a small value
  /// beside a large m, all of it where x is 0.
  Value runningMean(StringRef state, Value value, StringRef option);

  /// Ends the function with the parameter's new value, and with a copy of it in
  /// the form's type `compute` where that is narrower. Where the trainer skips
  /// the update, parameter and states keep their values instead; nothing that
  /// is not finite gets into them then.
  void finish(Value updated);

private:
  template <typename Op, typename... Args> Value create(Args... args) {
    return Op::create(*this, args...).getResult();
  }
  Value argument(Type type, StringRef name, Attribute value);
  Value scalar(ScalarKind kind, StringRef option = "", double factor = 1.0);
  Value select(Value condition, Value yes, Value no) {
    return create<arith::SelectOp>(condition, yes, no);
  }

  func::FuncOp function;
  Block *body;
  const UpdateForm &described;
  const UpdateSettings &chosen;
  llvm::MapVector<Attribute, Value> arguments; // states and scalars
  llvm::StringMap<Value> updates;              // new states by name, f32
};

} // namespace mlir::rota

#endif // ROTA_PASSES_OPTIMIZER_UPDATEBUILDER_H
