// SPDX-License-Identifier: Apache-2.0
//
// Update functions: what happens to the parameters of one form, and to their
// states, at the end of a step.
#ifndef ROTA_IR_ROTA_MODEL_UPDATE_H
#define ROTA_IR_ROTA_MODEL_UPDATE_H

#include "ir/rota/Rota.h"

namespace mlir::rota {

/// A function of the module that `rota.update` of a parameter names:
///   (parameter, gradient, states and scalars...)
///       -> (parameter, states..., zeroed gradient, copy in the compute type)
/// An argument with `rota.state` is a state, one with `rota.scalar` a scalar of
/// rank 0; results are in the order of these arguments. The gradient has the
/// type of its accumulators. A parameter that is computed in f32 has no copy.
/// Where the scalar `skip` is above 0, parameter and states are those of the
/// arguments, to the bit. Tensors are the optimizer's part, with padding where
/// the axes do not divide the parameter; padding is zero.
class UpdateFunction {
public:
  static constexpr unsigned parameter = 0, gradient = 1;

  /// The update of `param`; null when it has none.
  static UpdateFunction of(ParamOp param);

  explicit operator bool() const { return bool(function); }
  func::FuncOp getFunction() const { return function; }
  /// Null for arguments that are none.
  StateAttr stateOf(unsigned argument) const;
  ScalarAttr scalarOf(unsigned argument) const;
  /// Numbers of the arguments that are states.
  SmallVector<unsigned> states() const;

private:
  explicit UpdateFunction(func::FuncOp function) : function(function) {}
  mutable func::FuncOp function;
};

/// The element type of a parameter's gradient accumulators: `rota.gradient` of
/// the parameter, or without it the parameter's own.
Type gradientType(ParamOp param);

/// The function that `rota.squares` of a parameter names, from the optimizer's
/// part of the gradient to the sum of squares of each of its rows; null when
/// there is none.
func::FuncOp squaresOf(ParamOp param);

} // namespace mlir::rota

#endif // ROTA_IR_ROTA_MODEL_UPDATE_H
