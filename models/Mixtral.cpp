// SPDX-License-Identifier: Apache-2.0
//
// Mixtral (Jiang et al. 2024): Llama with a mixture of experts in every layer.
#include "models/Decoder.h"
#include "models/Experts.h"
#include "models/Family.h"

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

static std::unique_ptr<ModelBuilder>
readMixtral(Config &config, const Microbatch &microbatch, ModuleOp module) {
  DecoderDefaults defaults;
  defaults.normEpsilon = 1e-5;
  defaults.keyHeads = 8;
  defaults.rotary.fallback = 1e6;
  auto mixtral = DecoderConfig::read(config, microbatch, defaults);
  if (config.find("sliding_window"))
    mixtral.kinds.front().window = config.size("sliding_window");
  auto experts = ExpertConfig::read(config, mixtral, microbatch,
                                    {"num_local_experts", 8, 2});
  experts.names = {"block_sparse_moe.gate.weight",
                   "block_sparse_moe.experts.{expert}.w1.weight",
                   "block_sparse_moe.experts.{expert}.w3.weight",
                   "block_sparse_moe.experts.{expert}.w2.weight"};
  experts.readLosses(config, microbatch);
  return std::make_unique<MixtralBuilder>(mixtral, experts, module, microbatch);
}

static constexpr NeutralKey mixtralKeys[] = {
    {"router_jitter_noise", NeutralKey::Zero}, // on inputs of routers
};

const Family mlir::rota::mixtralFamily = {
    .modelType = "mixtral",
    .description = "Llama with a mixture of experts in every layer",
    .languageModel = "MixtralForCausalLM",
    .bareModel = "MixtralModel",
    .neutralKeys = mixtralKeys,
    .read = readMixtral};
