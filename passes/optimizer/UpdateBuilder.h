// SPDX-License-Identifier: Apache-2.0
//
// Builds the body of an update function.
#ifndef ROTA_PASSES_OPTIMIZER_UPDATEBUILDER_H
#define ROTA_PASSES_OPTIMIZER_UPDATEBUILDER_H

#include "ir/rota/Update.h"

#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::rota {

/// Any op of a model may be created, elementwise or not: values are whole
/// tensors, and the shard phase divides them as it divides the model's.
/// Arguments are added when they are first asked for.
class UpdateBuilder : public ImplicitLocOpBuilder {
public:
  /// Starts `function`, without arguments yet, for a parameter of this type.
  UpdateBuilder(Location loc, func::FuncOp function, RankedTensorType type,
                bool decays);

  /// The parameter's value before the step; f32.
  Value parameter() { return body->getArgument(UpdateFunction::parameter); }
  /// Its gradient: a mean over the step, clipped.
  Value gradient();
  /// Whether weight decay applies to the parameter.
  bool decays() const { return isDecaying; }

  /// The state of that name, f32 of the parameter's shape; `initial` everywhere
  /// before the first step. Its new value must be given with `setState`.
  Value state(StringRef name, double initial = 0.0);
  void setState(Value state, Value updated) { updates[state] = updated; }

  /// The same numbers for all elements, computed by the trainer in each step.
  Value learningRate() { return scalar(ScalarKind::LearningRate); }
  /// x, 1 - x and, in step t, 1 - x^t of an option's value x. Where x is near
  /// 1, the latter two cannot be computed from x in f32.
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

  /// Ends the function with the parameter's new value, and with a copy of it in
  /// type `compute` where that is narrower.
  void finish(Value updated, Type compute);

private:
  template <typename Op, typename... Args> Value create(Args... args) {
    return Op::create(*this, args...).getResult();
  }
  Value argument(Type type, StringRef name, Attribute value);
  Value scalar(ScalarKind kind, StringRef option = "");

  func::FuncOp function;
  Block *body;
  RankedTensorType type;
  bool isDecaying;
  llvm::MapVector<Attribute, Value> arguments; // states and scalars
  llvm::DenseMap<Value, Value> updates;        // of states
};

} // namespace mlir::rota

#endif // ROTA_PASSES_OPTIMIZER_UPDATEBUILDER_H
