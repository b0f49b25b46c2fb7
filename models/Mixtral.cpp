// SPDX-License-Identifier: Apache-2.0
//
// Mixtral (Jiang et al. 2024): Llama with a mixture of experts in every layer.
#include "models/Decoder.h"
#include "models/Experts.h"
#include "models/UnsupportedKeys.h"

using namespace mlir;
using namespace mlir::rota;

namespace {

class MixtralBuilder : public DecoderBuilder {
public:
  MixtralBuilder(const DecoderConfig &config, const ExpertConfig &experts,
                 ModuleOp module, const Microbatch &microbatch)
      : DecoderBuilder(config, module, microbatch), experts(*this, experts) {}

private:
  void declareFeedForward() override { experts.declare(); }
  Value feedForward(Value x) override { return experts.build(x); }

  ExpertBlock experts;
};

} // namespace

LogicalResult mlir::rota::buildMixtral(Config &config,
                                       const Microbatch &microbatch,
                                       ModuleOp module) {
  DecoderDefaults defaults;
  defaults.normEpsilon = 1e-5;
  defaults.rotary.fallback = 1e6;
  auto mixtral = DecoderConfig::read(config, microbatch, defaults);
  if (config.find("sliding_window"))
    mixtral.kinds.front().window = config.size("sliding_window");
  ExpertConfig experts{
      .embed = mixtral.embed,
      .feedForward = mixtral.feedForward,
      .experts = config.size("num_local_experts", 8),
      .choices = config.size("num_experts_per_tok", 2),
      .initializerRange = mixtral.initializerRange,
      .activation = mixtral.activation,
      .names = {"block_sparse_moe.gate.weight",
                "block_sparse_moe.experts.{expert}.w1.weight",
                "block_sparse_moe.experts.{expert}.w3.weight",
                "block_sparse_moe.experts.{expert}.w2.weight"},
  };
  experts.readLosses(config, microbatch);
  experts.check(config, "num_local_experts", "num_experts_per_tok",
                "intermediate_size", microbatch);
  expectFullAttention(config);
  expectArchitecture(config, {"MixtralForCausalLM", "MixtralModel"});
  refuseUnsupportedKeys(config);
  if (config.failed())
    return failure();
  MixtralBuilder(mixtral, experts, module, microbatch).build();
  return success();
}
