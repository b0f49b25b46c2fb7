// SPDX-License-Identifier: Apache-2.0
#include "models/Experts.h"

#include "ir/rota/Rules.h"

#include <cmath>

using namespace mlir;
using namespace mlir::rota;

/// Parts of a sequence that have rows of their own. Where ranks do not divide
/// the length, which passes/shard reports, the rows are those of the sequence.
static int64_t partsOf(const Microbatch &microbatch) {
  int64_t parts = microbatch.experts.parts * microbatch.experts.pieces;
  return microbatch.sequenceLength % parts == 0 ? parts : 1;
}

/// Tokens of such a part.
static int64_t partLength(const Microbatch &microbatch) {
  return microbatch.sequenceLength / partsOf(microbatch);
}

/// `factor` times the even share of the choices of `tokens`, rounded up.
static int64_t shareOf(double factor, int64_t choices, int64_t parts,
                       int64_t tokens) {
  double share = double(tokens) * double(choices) / parts;
  double most = double(Config::maxSize); // largest size of a dimension
  return int64_t(std::clamp(std::ceil(factor * share), 1.0, most));
}

std::optional<int64_t>
ExpertConfig::capacity(const Microbatch &microbatch) const {
  if (microbatch.experts.capacity == 0)
    return std::nullopt;
  return shareOf(microbatch.experts.capacity, choices, experts,
                 microbatch.sequenceLength);
}

int64_t ExpertConfig::rows(const Microbatch &microbatch) const {
  int64_t blocks = microbatch.experts.ranks, ofBlock = experts / blocks;
  int64_t tokens = partLength(microbatch);
  int64_t rows = tokens * std::min(choices, ofBlock);
  if (auto taken = capacity(microbatch))
    rows = std::min(rows, *taken * ofBlock);
  if (double factor = microbatch.experts.buffer)
    rows = std::min(rows, shareOf(factor, choices, blocks, tokens));
  return rows * blocks;
}

ExpertConfig ExpertConfig::read(Config &config, const DecoderConfig &decoder,
                                const Microbatch &microbatch,
                                const ExpertDefaults &defaults) {
  StringRef choicesKey = "num_experts_per_tok", innerKey = "intermediate_size";
  ExpertConfig result{
      .embed = decoder.embed,
      .feedForward = decoder.feedForward,
      .experts = config.size(defaults.key, defaults.experts),
      .choices = config.size(choicesKey, defaults.choices),
      .initializerRange = decoder.initializerRange,
      .activation = decoder.activation,
      .balanceLoss = microbatch.routers.balance.value_or(0),
      .zLoss = microbatch.routers.zLoss,
  };
  if (defaults.feedForward) {
    innerKey = "moe_intermediate_size";
    result.feedForward = config.size(innerKey, *defaults.feedForward);
  }
  int64_t experts = result.experts, inner = result.feedForward;
  if (result.choices > experts)
    config.error(choicesKey) << "expected at most '" << defaults.key << "', "
                             << experts << ", got " << result.choices;
  if (experts % microbatch.experts.ranks != 0)
    config.error(defaults.key)
        << "expected a multiple of the " << microbatch.experts.ranks
        << " ranks along 'expert', got " << experts;
  if (!config.failed() &&
      succeeded(checkElements(
          config, innerKey,
          (defaults.key + " x " + innerKey + " x hidden_size").str(),
          {experts, inner, decoder.embed})))
    (void)checkElements(
        config, choicesKey,
        "sequences x rows of a sequence x the larger of hidden_size and " +
            innerKey.str(),
        {microbatch.sequences * partsOf(microbatch), result.rows(microbatch),
         std::max(decoder.embed, inner)});
  return result;
}

void ExpertBlock::declare() {
  Attribute init = builder.normal(config.initializerRange);
  builder.param(config.names.router, {config.experts, config.embed},
                {"router", "embed"}, init);
  if (!config.routerBias.empty())
    builder.param(config.routerBias, {config.experts}, {"router"},
                  builder.constant(0.0));
  if (!config.bias.empty())
    builder.param(config.bias, {config.experts}, {"choice"},
                  builder.constant(0.0));
  declareWeights();
}

void ExpertBlock::declareWeights() {
  Attribute init = builder.normal(config.initializerRange);
  int64_t experts = config.experts, inner = config.feedForward;
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
    x = castElements(builder, builder.getLoc(), x, wide);
  } else {
    weight = builder.read(config.names.router, {experts, embed});
  }
  auto type = tokens.clone(wide).clone(
      {tokens.getDimSize(0), tokens.getDimSize(1), experts});
  Value product = EinsumOp::create(builder, type, "bse,xe->bsx", x, weight);
  if (config.routerBias.empty())
    return product;
  Value bias = BroadcastOp::create(
      builder, type, builder.readF32(config.routerBias, {experts}),
      ArrayRef<int64_t>{2});
  return arith::AddFOp::create(builder, product, bias);
}

RouteOp ExpertBlock::route(Value logits) {
  auto type = cast<RankedTensorType>(logits.getType());
  auto weights =
      type.clone({type.getDimSize(0), type.getDimSize(1), config.choices});
  Value bias = config.bias.empty()
                   ? Value()
                   : builder.readF32(config.bias, {config.experts});
  IntegerAttr groups, topGroups;
  if (config.groups > 1) {
    groups = builder.getI64IntegerAttr(config.groups);
    topGroups = builder.getI64IntegerAttr(config.topGroups);
  }
  FloatAttr biasRate;
  if (bias && config.biasRate > 0)
    biasRate = builder.getF64FloatAttr(config.biasRate);
  return RouteOp::create(builder, weights, weights.clone(builder.getI32Type()),
                         logits, bias, config.sigmoid, config.normalizes,
                         groups, topGroups, APFloat(config.scaling), biasRate);
}

FloatAttr ExpertBlock::fill() {
  const Microbatch &microbatch = builder.microbatch;
  double choices = double(partLength(microbatch)) * double(config.choices);
  double share = choices / double(config.rows(microbatch));
  return share < 1 ? builder.getF64FloatAttr(share) : FloatAttr();
}

Value ExpertBlock::product(Value rows, StringRef name, int64_t out, int64_t in,
                           Value counts, bool transposed) {
  auto type = cast<RankedTensorType>(rows.getType());
  SmallVector<int64_t> shape{config.experts, in, out};
  if (transposed)
    std::swap(shape[1], shape[2]);
  return GroupedProductOp::create(
      builder, type.clone({type.getDimSize(0), type.getDimSize(1), out}), rows,
      builder.read(name, shape), counts, /*offset=*/Value(), transposed,
      builder.microbatch.experts.ranks, fill());
}

Value ExpertBlock::apply(Value rows, Value counts) {
  int64_t inner = config.feedForward, embed = config.embed;
  const ExpertNames &names = config.names;
  Value gates = builder.named("moe_mlpwi_0",
                              product(rows, names.gate, inner, embed, counts));
  Value values = builder.named("moe_mlpwi_1",
                               product(rows, names.up, inner, embed, counts));
  Value active = ActivationOp::create(builder, gates.getType(),
                                      config.activation, gates, values);
  return builder.named("moe_mlpwo",
                       product(active, names.down, embed, inner, counts));
}

Value ExpertBlock::dispatch(const Routed &routed) {
  auto type = cast<RankedTensorType>(routed.tokens.getType());
  return DispatchOp::create(
      builder,
      type.clone({type.getDimSize(0) * routed.parts,
                  config.rows(builder.microbatch), config.embed}),
      routed.tokens, routed.places, /*weights=*/Value(), /*offset=*/Value(),
      routed.counts, builder.microbatch.experts.ranks, fill(), routed.parts);
}

Value ExpertBlock::combine(const Routed &routed, Value rows) {
  return CombineOp::create(builder, routed.tokens.getType(), rows,
                           routed.places, routed.weights, /*offset=*/Value(),
                           routed.counts, builder.microbatch.experts.ranks,
                           fill(), routed.parts);
}

/// The pieces of a tensor along the sequence.
static ValueRange split(ModelBuilder &builder, Value value, int64_t pieces) {
  auto type = cast<RankedTensorType>(value.getType());
  SmallVector<int64_t> shape(type.getShape());
  shape[1] /= pieces;
  SmallVector<Type> types(pieces, type.clone(shape));
  return SplitOp::create(builder, types, value, /*dim=*/1).getParts();
}

ExpertPlacesOp ExpertBlock::place(Value experts, int64_t parts) {
  const Microbatch &microbatch = builder.microbatch;
  int64_t sequences =
      cast<RankedTensorType>(experts.getType()).getDimSize(0) * parts;
  auto counts =
      RankedTensorType::get({sequences, config.experts}, builder.getI32Type());
  IntegerAttr capacity;
  if (auto taken = config.capacity(microbatch))
    capacity = builder.getI64IntegerAttr(*taken);
  return ExpertPlacesOp::create(builder, experts.getType(), counts, experts,
                                /*others=*/Value(), /*offset=*/Value(),
                                config.rows(microbatch),
                                microbatch.experts.ranks, capacity, parts);
}

Value ExpertBlock::build(Value x) {
  const Microbatch &microbatch = builder.microbatch;
  int64_t parts = partsOf(microbatch), pieces = microbatch.experts.pieces;
  Value scores = logits(x);
  RouteOp choices = route(scores);
  ExpertPlacesOp places = place(choices.getExperts(), parts);
  // Without a capacity nothing is dropped.
  IntegerAttr each;
  if (places.getCapacityAttr())
    each = builder.getI64IntegerAttr(partLength(microbatch) * config.choices);
  if (builder.isInLayer()) // what is observed has the number of a layer
    ObserveOp::create(builder, kExpertLoad, places.getCounts(), each, parts);
  addLosses(scores, places.getCounts(), config.rows(microbatch));
  if (pieces == 1 || parts != pieces) {
    Routed whole{x, places.getPlaces(), choices.getWeights(),
                 places.getCounts(), parts};
    return combine(whole, apply(dispatch(whole), whole.counts));
  }
  // Rows of all pieces are ready before the first product, so that those of one
  // travel beside the products of another. Each has places of its own, whose
  // counts are divided as its rows are.
  SmallVector<Routed> routed;
  SmallVector<Value> rows, results;
  for (auto [tokens, experts, weights] :
       llvm::zip(split(builder, x, pieces),
                 split(builder, choices.getExperts(), pieces),
                 split(builder, choices.getWeights(), pieces))) {
    ExpertPlacesOp own = place(experts, /*parts=*/1);
    routed.push_back({tokens, own.getPlaces(), weights, own.getCounts(),
                      /*parts=*/1});
    rows.push_back(dispatch(routed.back()));
  }
  for (auto [piece, own] : llvm::zip(routed, rows))
    results.push_back(combine(piece, apply(own, piece.counts)));
  return ConcatOp::create(builder, x.getType(), results, /*dim=*/1);
}
