// SPDX-License-Identifier: Apache-2.0
//
// Multi-token prediction (DeepSeek-AI 2024, section 2.2) by one module, which
// predicts the token after each target. With h[i] the hidden state from which
// the head predicts the target t[i + 1],
//   z[i] = M [RMSNorm(embedding of t[i + 1]); RMSNorm(h[i])]
//   the logits of t[i + 2] = head(RMSNorm(layer(z))[i])
// with a layer like the last one of the model, and the model's embedding and
// head. h is taken after the final norm, as the programs that run published
// weights do. The report says nothing of it.
//
// The loss is the sum over t[i + 2] of the sequence, divided by the number of
// all targets (equation 24). Neither a target that does not count is predicted,
// nor the one after it: as an input such a target is a row of zeros. So is the
// first token of a document, where documents are apart, and the one after it is
// not predicted out of the document before.
#include "models/Decoder.h"

#include "ir/rota/Rules.h"

using namespace mlir;
using namespace mlir::rota;

/// The coefficient in the first phase of the report's training, section 4.2.
static constexpr double defaultCoefficient = 0.3;

void DecoderConfig::readPrediction(Config &config,
                                   const Microbatch &microbatch) {
  StringRef key = kPredictionKey;
  const nlohmann::json *modules = config.find(key);
  if (!modules)
    return;
  if (*modules != 0 && *modules != 1) {
    config.expected(key, "0 or 1; more modules are not supported");
    return;
  }
  double coefficient = microbatch.predictionLoss.value_or(defaultCoefficient);
  if (*modules == 0 || coefficient == 0)
    return;
  if (microbatch.lossBlocks != 1)
    config.error(key) << "expected one block of the loss, as its layer needs "
                         "the whole sequence, got "
                      << microbatch.lossBlocks;
  if (microbatch.sequenceLength < 2)
    config.error(key) << "expected sequences of 2 tokens or more, got "
                      << microbatch.sequenceLength;
  if (!config.failed())
    prediction = {kinds[kindOf.empty() ? 0 : kindOf.back()], coefficient};
}

std::string DecoderBuilder::predictionPrefix() {
  return (names.stack + "." + Twine(config.layers) + ".").str();
}

void DecoderBuilder::declarePrediction() {
  openKind = &config.prediction->kind;
  setPrefix(predictionPrefix());
  int64_t embed = config.embed;
  declareNorm("enorm.weight", embed);
  declareNorm("hnorm.weight", embed);
  param("eh_proj.weight", {embed, 2 * embed}, {"embed", "joined"},
        normal(config.initializerRange));
  declareLayer();
  declareNorm("shared_head.norm.weight", embed);
  setPrefix("");
}

Value DecoderBuilder::shifted(Value x) {
  auto type = cast<RankedTensorType>(x.getType());
  SmallVector<int64_t> front(type.getShape()), last(front);
  front[1] -= 1;
  last[1] = 1;
  auto parts = SplitOp::create(
      *this, TypeRange{type.clone(front), type.clone(last)}, x, 1);
  Value zero = splat(type.clone(last), 0.0);
  return ConcatOp::create(*this, type, ValueRange{zero, parts.getParts()[0]},
                          1);
}

/// 0 where the next token of `positions` [B, S] in documents begins one, else
/// 1: [B, S] f32.
static Value continuesDocument(ModelBuilder &builder, Value positions) {
  auto type = cast<RankedTensorType>(positions.getType());
  int64_t sequences = type.getDimSize(0), length = type.getDimSize(1);
  Type f32 = builder.getF32Type();
  SmallVector<float> factors(length, 1.0f);
  factors.front() = 0.0f;
  Value table = arith::ConstantOp::create(
      builder, DenseElementsAttr::get(builder.tensor({length, 1}, f32),
                                      ArrayRef<float>(factors)));
  Value rows = EmbeddingOp::create(
      builder, builder.tensor({sequences, length, 1}, f32), positions, table);
  rows = ReshapeOp::create(builder, type.clone(f32), rows);
  Type first = builder.tensor({sequences, 1}, f32);
  auto parts = SplitOp::create(
      builder, TypeRange{first, builder.tensor({sequences, length - 1}, f32)},
      rows, 1);
  return ConcatOp::create(
      builder, type.clone(f32),
      ValueRange{parts.getParts()[1], builder.splat(first, 1.0)}, 1);
}

/// `x` [B, S, E] times `factors` [B, S] f32.
static Value scaleRows(ModelBuilder &builder, Value x, Value factors) {
  auto type = cast<RankedTensorType>(x.getType());
  factors =
      castElements(builder, builder.getLoc(), factors, type.getElementType());
  return arith::MulFOp::create(
      builder, x,
      BroadcastOp::create(builder, type, factors, ArrayRef<int64_t>{0, 1}));
}

Value DecoderBuilder::predictedState(Value normed, Value targets,
                                     Value counted) {
  auto type = cast<RankedTensorType>(targets.getType());
  Value isCounted = arith::CmpFOp::create(
      *this, arith::CmpFPredicate::OGT, counted, splat(counted.getType(), 0.0));
  Value first = arith::ConstantOp::create(
      *this, DenseElementsAttr::get(type, getI32IntegerAttr(0)));
  Value tokens = arith::SelectOp::create(*this, isCounted, targets, first);
  Value table = read(names.table, {config.vocabulary, config.embed});
  Value rows = embedded(
      EmbeddingOp::create(*this, normed.getType(), tokens, table).getResult());
  rows = scaleRows(*this, rows, counted);

  openKind = &config.prediction->kind;
  setPrefix(predictionPrefix());
  int64_t embed = config.embed;
  Value both = ConcatOp::create(
      *this, activation({2 * embed}),
      ValueRange{norm(rows, "enorm.weight"), norm(normed, "hnorm.weight")}, 2);
  Value state = buildLayer(project(both, "eh_proj.weight", embed, 2 * embed));
  state = norm(state, "shared_head.norm.weight");
  setPrefix("");
  return state;
}

/// Position i + 1 has the target t[i + 2], and gets the state of i. Where that
/// is not to count the state is 0, and so are all logits: the position's loss
/// is its logsumexp, whatever the target, and is subtracted.
Value DecoderBuilder::predictionLoss(Value normed, Value targets) {
  Value counted = countTargets(targets).first;
  if (Value positions = documentPositions())
    counted = arith::MulFOp::create(*this, counted,
                                    continuesDocument(*this, positions));
  Value state = shifted(predictedState(normed, targets, counted));
  Value counts = shifted(counted);
  Value logits = headOf(scaleRows(*this, state, counts));
  auto scalar = tensor({}, getF32Type());
  auto loss = CrossEntropyOp::create(*this, scalar, scalar, counts.getType(),
                                     logits, targets);
  Value others =
      arith::SubFOp::create(*this, splat(counts.getType(), 1.0), counts);
  others = arith::MulFOp::create(*this, others, loss.getLogsumexp());
  Value surplus = ReduceOp::create(*this, scalar, ReduceKind::Sum, others,
                                   ArrayRef<int64_t>{0, 1});
  return arith::SubFOp::create(*this, loss.getSum(), surplus);
}
