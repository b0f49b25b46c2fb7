// SPDX-License-Identifier: Apache-2.0
//
// A model as passes see it: its functions and parameters.
#ifndef ROTA_IR_ROTA_MODEL_MODEL_H
#define ROTA_IR_ROTA_MODEL_MODEL_H

#include "ir/rota/model/Roles.h"

namespace mlir::rota {

/// The parameter that a `read` or `accumulate` in `user` of that name means: of
/// the enclosing layer or, failing that, of the module. Null when there is
/// none.
ParamOp lookupParam(Operation *user, StringAttr name);

/// The element type in which the functions of `param`'s scope read it. Emits an
/// error and fails when they read it in two types or not at all.
FailureOr<Type> readType(ParamOp param);

/// Gives layer i of `stack` the kind `kinds[i]`, by the shortest pattern that
/// repeats.
void setKinds(StackOp stack, ArrayRef<Attribute> kinds);

/// A loss beside the main one, see `rota.auxiliary_loss`.
struct AuxiliaryLossInfo {
  std::string name;
  double coefficient;
  double weight; // weight of one microbatch, over all layers
};

/// The parts of a model module; Roles.h says which functions it has. `embed`
/// and `loss` stay as they are built when `differentiate` adds the others.
/// Parameter gradients leave through `rota.accumulate`.
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
  func::FuncOp function(ModelPart part, FunctionKind kind) const;
  static func::FuncOp function(LayerOp layer, FunctionKind kind);
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
  /// The type of the activation that the functions of `part` take or return.
  RankedTensorType activationType(ModelPart part) const;
  /// Calls of the loss's functions in a microbatch. Call k works on the kth of
  /// equal parts of the rows (batch and sequence, flattened) of activation and
  /// targets. The sums and weights of the calls add up.
  int64_t lossCalls() const;
  /// A parameter's own name, with "{layer}" and other placeholders.
  static std::string parameterName(ParamOp param);
  /// The name that checkpoints have for it: its own, or that of the tensor that
  /// it is joined in.
  static std::string checkpointName(ParamOp param);
  /// Number of parameters, those of all layers counted, shared ones once.
  int64_t parameterCount() const;
  /// Operations of a function, by CostOpInterface.
  static double flopsOf(func::FuncOp function);
  /// Operations per token of forward and backward, the latter counted by
  /// trainingWork. For a model as built: later its functions
  /// have lost composite ops or are those of one rank.
  double flopsPerToken() const;
  /// The same if attention computed all pairs of positions, seen or not, as
  /// some engines count.
  double fullFlopsPerToken() const;
};

} // namespace mlir::rota

#endif // ROTA_IR_ROTA_MODEL_MODEL_H
