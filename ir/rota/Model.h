// SPDX-License-Identifier: Apache-2.0
//
// A model as passes see it: where its functions and parameters are, by role.
#ifndef ROTA_IR_ROTA_MODEL_H
#define ROTA_IR_ROTA_MODEL_H

#include "ir/rota/Rota.h"

namespace mlir::rota {

/// Names of the functions that make a model. `embed`, `loss` and what
/// differentiation makes of them stand in the module; the rest in a layer.
namespace function {
inline constexpr llvm::StringLiteral embed = "embed";
inline constexpr llvm::StringLiteral embedBackward = "embed_backward";
inline constexpr llvm::StringLiteral loss = "loss";
inline constexpr llvm::StringLiteral lossBackward = "loss_backward";
inline constexpr llvm::StringLiteral lossBackwardInput = "loss_backward_input";
inline constexpr llvm::StringLiteral lossBackwardWeight =
    "loss_backward_weight";
inline constexpr llvm::StringLiteral lossWeight = "loss_weight";
inline constexpr llvm::StringLiteral forward = "forward";
inline constexpr llvm::StringLiteral backward = "backward";
inline constexpr llvm::StringLiteral backwardInput = "backward_input";
inline constexpr llvm::StringLiteral backwardWeight = "backward_weight";
} // namespace function

/// The parameter that a `read` or `accumulate` in `user` of that name means: of
/// the enclosing layer or, failing that, of the module. Null when there is
/// none.
ParamOp lookupParam(Operation *user, StringAttr name);

/// A loss beside the main one, see `rota.auxiliary_loss`.
struct AuxiliaryLossInfo {
  std::string name;
  double coefficient;
  double weight; // of one microbatch, over all layers
};

/// The parts of a model module. Functions that are not there are null.
///
/// Signatures as built:
///   embed(tokens) -> activation
///   forward(activation) -> activation                           per layer kind
///   loss(activation, targets) -> (sum, weight)
/// and after `differentiate`:
///   embed_backward(tokens, cotangent) -> ()
///   forward(activation) -> (activation, residuals...)
///   backward(activation, residuals..., cotangent) -> cotangent
///     or backward_input(activation, residuals..., cotangent)
///          -> (cotangent, cotangent residuals...)
///        backward_weight(activation, residuals..., cotangent residuals...)
///          -> ()
///   loss_backward(activation, targets) -> (sum, weight, cotangent)
///     or loss_backward_input(activation, targets)
///          -> (sum, weight, cotangent, cotangent residuals...)
///        loss_backward_weight(activation, targets, cotangent residuals...)
///          -> ()
///   loss_weight(targets) -> weight              with auxiliary losses alone
/// `embed` and `loss` stay as they are. Parameter gradients leave through
/// `rota.accumulate`. A result of `forward` and the argument of `backward` that
/// it becomes, or that argument alone where it is the activation, is marked
/// `rota.offload` when it waits in the host's memory; such residuals come last.
class Model {
public:
  /// Reads the parts of `module`; emits an error and fails when a part that
  /// every model has is missing or has a wrong signature.
  static FailureOr<Model> get(ModuleOp module);

  ModuleOp module;
  StackOp stack;
  func::FuncOp embed, loss;

  /// The layer kinds in the order of the stack's body.
  SmallVector<LayerOp> kinds() const;
  /// The kind of layer `layer`.
  LayerOp kindOf(int64_t layer) const;
  /// Parameters outside the stack, in the order of the module.
  SmallVector<ParamOp> globalParams() const;
  /// A function of the module or of a layer; null when there is none.
  func::FuncOp function(StringRef name) const;
  static func::FuncOp function(LayerOp kind, StringRef name);
  /// The parameters of a layer kind, in order.
  static SmallVector<ParamOp> params(LayerOp kind);
  /// Parameters that `function` reads or accumulates into, in the order in
  /// which they are declared.
  static SmallVector<ParamOp> usedParams(func::FuncOp function);
  /// The auxiliary losses of the layers' `forward`, by their first use in the
  /// stack. Emits an error and fails when one has two coefficients.
  FailureOr<SmallVector<AuxiliaryLossInfo>> auxiliaryLosses() const;
  /// The type of the activation between layers.
  RankedTensorType activationType() const;
  /// A parameter's name in checkpoints, "{layer}" for the layer's number.
  std::string checkpointName(ParamOp param) const;
  /// Number of parameters, those of all layers counted, shared ones once.
  int64_t parameterCount() const;
};

} // namespace mlir::rota

#endif // ROTA_IR_ROTA_MODEL_H
