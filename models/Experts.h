// SPDX-License-Identifier: Apache-2.0
//
// A mixture of experts in the place of a layer's feed-forward: a router gives
// each token k of X experts, each of which is a gated feed-forward.
#ifndef ROTA_MODELS_EXPERTS_H
#define ROTA_MODELS_EXPERTS_H

#include "ir/rota/experts/Experts.h"
#include "models/Decoder.h"

namespace mlir::rota {

/// The observation of the rows of each expert.
inline constexpr StringLiteral kExpertLoad = "expert_load";

/// The names of a layer's parameters; hubs hold a tensor for each expert.
struct ExpertNames {
  StringRef router = "mlp.gate.weight";
  StringRef gate = "mlp.experts.{expert}.gate_proj.weight";
  StringRef up = "mlp.experts.{expert}.up_proj.weight";
  StringRef down = "mlp.experts.{expert}.down_proj.weight";
};

/// The key with the number of experts, and the values of keys that a
/// configuration of the family may lack.
struct ExpertDefaults {
  StringRef key;
  int64_t experts, choices;
  /// The value of `moe_intermediate_size`; none: experts have the
  /// `intermediate_size`.
  std::optional<int64_t> feedForward = std::nullopt;
};

struct ExpertConfig {
  int64_t embed, feedForward; // E, F
  int64_t experts, choices;   // X, k
  double initializerRange;
  ActivationKind activation = ActivationKind::Silu;
  /// Whether a token's weights are divided by their sum, and what they are
  /// multiplied by.
  bool normalizes = true;
  double scaling = 1.0;
  /// Sigmoids of the logits instead of a softmax, in f32 from the product on,
  /// and a bias of that name that only the choice depends on. No loss trains
  /// the bias; a rate above 0 balances experts with it.
  bool sigmoid = false;
  StringRef bias = {};
  double biasRate = 0;
  StringRef routerBias = {}; // bias of the logits, trained; empty: none
  /// Neighbouring experts in groups, of which a token may choose some; 1: none.
  int64_t groups = 1, topGroups = 1;
  ExpertNames names = {};
  /// Coefficients of auxiliary losses; 0: none.
  double balanceLoss = 0, zLoss = 0;

  /// Reads the sizes, and reports choices that exceed the experts and products
  /// of sizes that are too large. The losses are those of the command line.
  static ExpertConfig read(Config &config, const DecoderConfig &decoder,
                           const Microbatch &microbatch,
                           const ExpertDefaults &defaults);

  /// Takes the file's coefficient of the load balance, unless the command line
  /// has one, where the file has `output_router_logits`, as in transformers.
  void readLosses(Config &config, const Microbatch &microbatch);

  /// Rows of a sequence that an expert takes; none: all.
  std::optional<int64_t> capacity(const Microbatch &microbatch) const;
  /// Rows of a part of a sequence in all blocks, of which each rank along
  /// 'expert' has one. A token needs at most one row for each expert of a
  /// block, and an expert takes its capacity, even if all of that comes from
  /// one part.
  int64_t rows(const Microbatch &microbatch) const;
};

/// Builds the experts of one layer in `builder`'s open layer or function.
class ExpertBlock {
public:
  ExpertBlock(ModelBuilder &builder, const ExpertConfig &config)
      : builder(builder), config(config) {}
  virtual ~ExpertBlock() = default;

  void declare();
  /// [B, S, E] for `x` [B, S, E].
  Value build(Value x);

protected:
  /// Declares the weights of the experts.
  virtual void declareWeights();
  /// The results of the experts for their rows [parts * B, R, E], of the same
  /// shape. `counts` [parts * B, X] are the rows of each expert.
  virtual Value apply(Value rows, Value counts);

  /// Rows [parts * B, R, in] times parameter `name`, [X, out, in] or, where it
  /// is not `transposed`, [X, in, out].
  Value product(Value rows, StringRef name, int64_t out, int64_t in,
                Value counts, bool transposed = true);

  ModelBuilder &builder;
  const ExpertConfig config;

private:
  /// Tokens [B, S, E] with their choices, the places [B, S, k] and weights
  /// [B, S, k] of these, and the rows of each expert [parts * B, X].
  struct Routed {
    Value tokens, places, weights, counts;
    int64_t parts; // of a sequence
  };
  /// The rows of the choices in `experts` [B, S, k].
  ExpertPlacesOp place(Value experts, int64_t parts);
  /// The rows [parts * B, R, E] of the tokens, and back.
  Value dispatch(const Routed &routed);
  Value combine(const Routed &routed, Value rows);
  /// The part of the rows that choices take; null: all, or more than there are.
  FloatAttr fill();
  /// [B, S, X], f32.
  Value logits(Value x);
  /// The choices of tokens with those logits.
  RouteOp route(Value logits);
  /// Adds the auxiliary losses of the router's `logits`. `counts` [parts * B,
  /// X] are the rows of each expert, of `rows` a part of a sequence.
  void addLosses(Value logits, Value counts, int64_t rows);
};

} // namespace mlir::rota

#endif // ROTA_MODELS_EXPERTS_H
