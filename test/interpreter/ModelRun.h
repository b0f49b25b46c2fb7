// SPDX-License-Identifier: Apache-2.0
//
// A whole model, run sequentially by the interpreter: layers in order,
// microbatches in order, gradients accumulated. The reference for any pipeline
// of the same model.
#ifndef ROTA_TEST_INTERPRETER_MODELRUN_H
#define ROTA_TEST_INTERPRETER_MODELRUN_H

#include "ir/rota/model/Model.h"
#include "test/interpreter/Interpreter.h"

namespace rota::interpreter {

/// The data of `embed` and `loss`.
struct Microbatch {
  Tensor input, target;
};

/// The sums over all microbatches.
struct Step {
  double sum = 0, weight = 0;
  /// Auxiliary losses, each its coefficient times its sums over its weights.
  double auxiliary = 0;
  /// Terms of the main loss by name, each its coefficient times its sum.
  std::map<std::string, double> terms;
  /// Mean loss, sum / weight, that of its terms, and the auxiliary ones. The
  /// first two are 0 where nothing counts, as are the gradients.
  double loss() const {
    double all = sum;
    for (const auto &[name, term] : terms)
      all += term;
    return all * scale() + auxiliary;
  }
  double scale() const { return weight > 0 ? 1 / weight : 0; }
  /// Derivative of the mean loss in each parameter, by `parameterName`; empty
  /// after evaluation. The division by the weight happens once, at the end.
  Tensors gradients;
  /// The value that each microbatch's loss function names "logits", where it
  /// names one.
  llvm::SmallVector<Tensor> logits;
};

/// A parameter's name with the number of its layer (ignored outside layers).
std::string parameterName(const mlir::rota::Model &model,
                          mlir::rota::ParamOp param, int64_t layer);

/// The names and shapes of all parameters.
std::map<std::string, llvm::SmallVector<int64_t>>
parameterShapes(const mlir::rota::Model &model);

/// A model with its parameters: its functions, each of which reads and
/// accumulates in the right place. `embed`, `loss` and each layer have gradient
/// accumulators of their own, which are summed in this order at the end, as
/// `rota.accumulate` says.
class ModelInstance {
public:
  /// Values of one microbatch in one layer or in the loss.
  using Values = mlir::rota::RoleValues<Tensor>;

  /// `model` and `parameters` must outlive the instance.
  ModelInstance(const mlir::rota::Model &model, const Tensors &parameters,
                const Options &options);

  int64_t layers() const { return layerEnvironments.size(); }
  /// Finds the cotangents of auxiliary losses for a step of these microbatches,
  /// and the means of observations. Before the first forward.
  llvm::LogicalResult beginStep(llvm::ArrayRef<Microbatch> microbatches);
  /// The means alone.
  llvm::LogicalResult findMeans(llvm::ArrayRef<Microbatch> microbatches);
  llvm::FailureOr<Tensor> embed(const Tensor &input);
  /// Returns the activation that leaves; `saved`, which has the microbatch's
  /// tokens where there are documents, receives what backward needs.
  llvm::FailureOr<Tensor> forward(int64_t layer, const Tensor &activation,
                                  Values &saved);
  /// The loss alone, which is added to the step's.
  llvm::LogicalResult evaluateLoss(const Tensor &activation,
                                   const Microbatch &microbatch);
  /// The loss, and the activation's cotangent; `saved` is as in forward(), and
  /// receives what the weight part of a split backward needs.
  llvm::FailureOr<Tensor> backwardOfLoss(const Tensor &activation,
                                         const Tensor &target, Values &saved);
  /// The cotangent of the layer's input; `saved` as forward left it, and with
  /// the backward split as the weight part needs it.
  llvm::FailureOr<Tensor> backward(int64_t layer, Values &saved,
                                   const Tensor &cotangent);
  /// The second parts of a split backward.
  llvm::LogicalResult backwardWeightOfLoss(Values &saved);
  llvm::LogicalResult backwardWeight(int64_t layer, Values &saved);
  llvm::LogicalResult backwardOfEmbed(const Tensor &input,
                                      const Tensor &cotangent);

  bool isLossSplit() const;
  bool isSplit(int64_t layer) const;

  /// The sums so far, gradients divided by the weight. Call once.
  Step takeStep();

private:
  void bind(Environment &environment, Tensors &gradients,
            mlir::rota::ParamOp param, int64_t layer,
            const Tensors &parameters);
  llvm::LogicalResult call(Environment &environment, mlir::rota::ModelPart part,
                           mlir::rota::FunctionKind kind, Values &values);
  llvm::LogicalResult call(int64_t layer, mlir::rota::FunctionKind kind,
                           Values &values);
  llvm::LogicalResult run(mlir::Operation *scope, Environment &environment,
                          mlir::rota::ModelPart part,
                          mlir::rota::FunctionKind kind, Values &values);
  void addLoss(const Values &values);
  llvm::LogicalResult callLoss(mlir::rota::FunctionKind kind, Values &values,
                               bool adds);

  const mlir::rota::Model &model;
  Options options;
  Step step;
  Tensors named, lossGradients;
  /// Auxiliary losses of one microbatch.
  llvm::SmallVector<mlir::rota::AuxiliaryLossInfo> auxiliaryLosses;
  std::map<std::string, double> auxiliaryCotangents;
  /// A layer has sums of its own: the order of its microbatches is any
  /// schedule's.
  std::vector<std::map<std::string, double>> auxiliarySums;
  /// By layer; empty where nobody reads means.
  std::vector<Tensors> observedSums, observedMeans;
  int64_t microbatchCount = 0;
  Environment embedEnvironment, lossEnvironment;
  std::vector<Environment> layerEnvironments;
};

/// The loss alone, through `embed`, each layer's `forward`, and `loss`.
llvm::FailureOr<Step> evaluate(const mlir::rota::Model &model,
                               const Tensors &parameters,
                               llvm::ArrayRef<Microbatch> microbatches,
                               const Options &options = {});

/// Loss and gradients of a differentiated model, through `forward` and
/// `backward` or `backward_input` and `backward_weight`, as Roles.h says.
llvm::FailureOr<Step> differentiate(const mlir::rota::Model &model,
                                    const Tensors &parameters,
                                    llvm::ArrayRef<Microbatch> microbatches,
                                    const Options &options = {});

} // namespace rota::interpreter

#endif // ROTA_TEST_INTERPRETER_MODELRUN_H
