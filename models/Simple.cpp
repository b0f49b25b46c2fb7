// SPDX-License-Identifier: Apache-2.0
//
// The `simple` family: y = x W in every layer, for replays of pipelines.
// Inputs and targets are f32 tensors [B, S, E]. The loss is the sum over rows
// of ||y - target||, its weight the number of rows. It is additive over
// microbatches, unlike the norm of the whole tensor, so that a batch may be cut
// in any way. A coefficient adds an auxiliary loss, the mean of y^2 over all
// layers.
#include "models/Family.h"
#include "runtime/text/Text.h"

#include <cmath>

using namespace mlir;
using namespace mlir::rota;

namespace {

class SimpleBuilder : public ModelBuilder {
public:
  /// A coefficient of 0 is no auxiliary loss.
  SimpleBuilder(int64_t embed, int64_t layers, double coefficient,
                ModuleOp module, const Microbatch &microbatch)
      : ModelBuilder(module, microbatch), embed(embed), layers(layers),
        coefficient(coefficient),
        dataType(
            tensor({microbatch.sequences, microbatch.sequenceLength, embed},
                   getF32Type())) {}

  void build() override {
    beginLayers("layers", SmallVector<StringRef>(layers, "linear"));
    beginKind("linear");
    param("weight", {embed, embed}, {"in", "out"},
          normal(1.0 / std::sqrt(double(embed))));
    RankedTensorType type = activation({embed});
    Value x = beginFunction(ModelPart::Layer, {{Role::InputActivation, type},
                                               {Role::OutputActivation, type}})
                  .one(Role::InputActivation);
    Value weight = read("weight", {embed, embed});
    Value y = EinsumOp::create(*this, type, "bsk,kn->bsn", x, weight);
    if (coefficient != 0)
      addAuxiliaryLoss(y);
    finish({{Role::OutputActivation, y}});
    endLayers();
    buildEmbed();
    buildLoss();
  }

private:
  bool isWide() { return computeType().isF32(); }

  void addAuxiliaryLoss(Value y) {
    if (!isWide())
      y = arith::ExtFOp::create(*this, dataType, y);
    Value square = arith::MulFOp::create(*this, y, y);
    Value sum =
        ReduceOp::create(*this, tensor({}, getF32Type()), ReduceKind::Sum,
                         square, ArrayRef<int64_t>{0, 1, 2});
    AuxiliaryLossOp::create(*this, "activation", sum,
                            APFloat(double(dataType.getNumElements())),
                            APFloat(coefficient));
  }

  void buildEmbed() {
    RankedTensorType type = activation({embed});
    Value x = beginFunction(ModelPart::Embed, {{Role::Tokens, dataType},
                                               {Role::OutputActivation, type}})
                  .one(Role::Tokens);
    if (!isWide())
      x = arith::TruncFOp::create(*this, type, x);
    finish({{Role::OutputActivation, x}});
  }

  void buildLoss() {
    beginLoss();
    auto scalar = tensor({}, getF32Type());
    auto rows = tensor({microbatch.sequences, length()}, getF32Type());
    auto targetType =
        tensor({microbatch.sequences, length(), embed}, getF32Type());
    auto arguments = beginFunction(
        ModelPart::Loss, {{Role::InputActivation, activation({embed})},
                          {Role::Targets, targetType},
                          {Role::LossSum, scalar},
                          {Role::LossWeight, scalar}});
    Value y = arguments.one(Role::InputActivation);
    if (!isWide())
      y = arith::ExtFOp::create(*this, targetType, y);
    Value difference =
        arith::SubFOp::create(*this, y, arguments.one(Role::Targets));
    Value square = arith::MulFOp::create(*this, difference, difference);
    Value sums = ReduceOp::create(*this, rows, ReduceKind::Sum, square,
                                  ArrayRef<int64_t>{2});
    Value norms = math::SqrtOp::create(*this, sums);
    Value sum = ReduceOp::create(*this, scalar, ReduceKind::Sum, norms,
                                 ArrayRef<int64_t>{0, 1});
    float count = microbatch.sequences * length();
    Value weight = splat(scalar, count);
    finish({{Role::LossSum, sum}, {Role::LossWeight, weight}});
  }

  int64_t embed, layers;
  double coefficient;
  RankedTensorType dataType;
};

} // namespace

static std::unique_ptr<ModelBuilder>
readSimple(Config &config, const Microbatch &microbatch, ModuleOp module) {
  if (microbatch.documentEnd)
    config.error("model_type")
        << "expected no 'document-mask' for the family 'simple', which has no "
           "attention, got end token "
        << *microbatch.documentEnd;
  if (microbatch.zLoss != 0)
    config.error("model_type") << "expected no z-loss for the family 'simple', "
                                  "which has no logits, got "
                               << ::rota::numberText(microbatch.zLoss);
  int64_t embed = config.size("hidden_size");
  int64_t layers = config.size("num_hidden_layers", {}, Config::maxLayers);
  double coefficient =
      config.real("auxiliary_loss_coefficient", 0.0, "a finite number",
                  [](double) { return true; });
  int64_t rows = microbatch.sequences * microbatch.sequenceLength;
  if (!config.failed() &&
      succeeded(checkElements(config, "hidden_size",
                              "hidden_size x hidden_size", {embed, embed})))
    (void)checkElements(config, "hidden_size",
                        "sequences x sequence length x hidden_size",
                        {rows, embed});
  return std::make_unique<SimpleBuilder>(embed, layers, coefficient, module,
                                         microbatch);
}

const Family mlir::rota::simpleFamily = {
    .modelType = "simple",
    .description = "y = x W in every layer on f32 inputs, for replays of "
                   "pipelines",
    .read = readSimple};
