// SPDX-License-Identifier: Apache-2.0
#include "models/Experts.h"

#include "ir/rota/Experts.h"

#include <cmath>

using namespace mlir;
using namespace mlir::rota;

/// `factor` times the even share of the choices of a sequence, rounded up.
static int64_t shareOf(double factor, int64_t choices, int64_t parts,
                       const Microbatch &microbatch) {
  double share = double(microbatch.sequenceLength) * double(choices) / parts;
  double most = double(Config::maxSize); // of a dimension
  return int64_t(std::clamp(std::ceil(factor * share), 1.0, most));
}

std::optional<int64_t>
ExpertConfig::capacity(const Microbatch &microbatch) const {
  if (microbatch.experts.capacity == 0)
    return std::nullopt;
  return shareOf(microbatch.experts.capacity, choices, experts, microbatch);
}

int64_t ExpertConfig::rows(const Microbatch &microbatch) const {
  int64_t blocks = microbatch.experts.ranks, ofBlock = experts / blocks;
  int64_t rows = microbatch.sequenceLength * std::min(choices, ofBlock);
  if (auto taken = capacity(microbatch))
    rows = std::min(rows, *taken * ofBlock);
  if (double factor = microbatch.experts.buffer)
    rows = std::min(rows, shareOf(factor, choices, blocks, microbatch));
  return rows * blocks;
}

void ExpertConfig::check(Config &config, StringRef expertsKey,
                         StringRef choicesKey, StringRef feedForwardKey,
                         const Microbatch &microbatch) const {
  if (choices > experts)
    config.error(choicesKey) << "expected at most '" << expertsKey << "', "
                             << experts << ", got " << choices;
  if (experts % microbatch.experts.ranks != 0)
    config.error(expertsKey)
        << "expected a multiple of the " << microbatch.experts.ranks
        << " ranks along 'expert', got " << experts;
  if (config.failed() ||
      failed(checkElements(
          config, feedForwardKey,
          (expertsKey + " x " + feedForwardKey + " x hidden_size").str(),
          {experts, feedForward, embed})))
    return;
  (void)checkElements(
      config, choicesKey,
      "sequences x rows of a sequence x the larger of hidden_size and " +
          feedForwardKey.str(),
      {microbatch.sequences, rows(microbatch), std::max(embed, feedForward)});
}

void ExpertBlock::declare() {
  Attribute init = builder.normal(config.initializerRange);
  int64_t experts = config.experts, inner = config.feedForward;
  builder.param(config.names.router, {experts, config.embed},
                {"router", "embed"}, init);
  if (!config.bias.empty())
    builder.param(config.bias, {experts}, {"choice"}, builder.constant(0.0));
  for (StringRef name : {config.names.gate, config.names.up})
    builder.param(name, {experts, inner, config.embed},
                  {"experts", "mlp", "embed"}, init);
  builder.param(config.names.down, {experts, config.embed, inner},
                {"experts", "embed", "mlp"}, init);
}

Value ExpertBlock::logits(Value x) {
  int64_t experts = config.experts, embed = config.embed;
  auto tokens = cast<RankedTensorType>(x.getType());
  Type wide = builder.getF32Type();
  Value weight;
  if (config.sigmoid) {
    weight = builder.readF32(config.names.router, {experts, embed});
    if (tokens.getElementType() != wide)
      x = arith::ExtFOp::create(builder, tokens.clone(wide), x);
  } else {
    weight = builder.read(config.names.router, {experts, embed});
  }
  auto type = tokens.clone(wide).clone(
      {tokens.getDimSize(0), tokens.getDimSize(1), experts});
  return EinsumOp::create(builder, type, "bse,xe->bsx", x, weight);
}

Value ExpertBlock::product(Value rows, StringRef name, int64_t out, int64_t in,
                           Value counts, int64_t blocks) {
  auto type = cast<RankedTensorType>(rows.getType());
  Value weights = builder.read(name, {config.experts, out, in});
  return GroupedProductOp::create(
      builder, type.clone({type.getDimSize(0), type.getDimSize(1), out}), rows,
      weights, counts, /*transposed=*/true, blocks);
}

Value ExpertBlock::build(Value x) {
  const Microbatch &microbatch = builder.microbatch;
  auto tokens = cast<RankedTensorType>(x.getType());
  int64_t sequences = tokens.getDimSize(0), length = tokens.getDimSize(1);
  int64_t choices = config.choices, blocks = microbatch.experts.ranks;
  int64_t count = config.rows(microbatch);
  Type index = builder.getI32Type();
  auto chosen = RankedTensorType::get({sequences, length, choices}, index);
  Value bias = config.bias.empty()
                   ? Value()
                   : builder.readF32(config.bias, {config.experts});
  IntegerAttr groups, topGroups;
  if (config.groups > 1) {
    groups = builder.getI64IntegerAttr(config.groups);
    topGroups = builder.getI64IntegerAttr(config.topGroups);
  }
  Value scores = logits(x);
  auto route =
      RouteOp::create(builder, chosen.clone(builder.getF32Type()), chosen,
                      scores, bias, config.sigmoid, config.normalizes, groups,
                      topGroups, APFloat(config.scaling));
  auto counts = RankedTensorType::get({sequences, config.experts}, index);
  IntegerAttr capacity;
  if (auto taken = config.capacity(microbatch))
    capacity = builder.getI64IntegerAttr(*taken);
  auto places = ExpertPlacesOp::create(
      builder, chosen, counts, route.getExperts(), count, blocks, capacity);
  addLosses(scores, places.getCounts(), count);
  Value rows = DispatchOp::create(
      builder, tokens.clone({sequences, count, config.embed}), x,
      places.getPlaces());
  auto apply = [&](StringRef remat, Value of, StringRef name, int64_t out,
                   int64_t in) {
    return builder.named(
        remat, product(of, name, out, in, places.getCounts(), blocks));
  };
  int64_t inner = config.feedForward, embed = config.embed;
  Value gates = apply("moe_mlpwi_0", rows, config.names.gate, inner, embed);
  Value values = apply("moe_mlpwi_1", rows, config.names.up, inner, embed);
  Value active = ActivationOp::create(builder, gates.getType(),
                                      config.activation, gates, values);
  Value outputs = apply("moe_mlpwo", active, config.names.down, embed, inner);
  return CombineOp::create(builder, tokens, outputs, places.getPlaces(),
                           route.getWeights());
}
