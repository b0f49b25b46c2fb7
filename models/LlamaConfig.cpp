// SPDX-License-Identifier: Apache-2.0
//
// Reading of a Llama configuration in both spellings that hubs use: the older
// (`rope_theta`, `rope_scaling`) and that of transformers 5
// (`rope_parameters`).
#include "models/LlamaConfig.h"

#include "mlir/Support/LLVM.h"

using namespace mlir;
using namespace mlir::rota;

namespace {

/// A key that would change the computation unless it has a neutral value.
struct NeutralKey {
  StringLiteral key;
  enum Neutral { False, Zero, One, Absent, Empty } neutral;
};

} // namespace

/// Keys that Llama's own code reads, and those of its relatives that describe
/// a computation which this builder does not make.
static constexpr NeutralKey neutralKeys[] = {
    // Read by Llama.
    {"attention_bias", NeutralKey::False},
    {"mlp_bias", NeutralKey::False},
    {"attention_dropout", NeutralKey::Zero},
    {"pretraining_tp", NeutralKey::One},
    {"quantization_config", NeutralKey::Absent},
    {"pruned_heads", NeutralKey::Empty},
    // Other attention.
    {"sliding_window", NeutralKey::Absent},
    {"use_sliding_window", NeutralKey::False},
    {"attention_chunk_size", NeutralKey::Absent},
    {"no_rope_layers", NeutralKey::Empty},
    {"qkv_bias", NeutralKey::False},
    {"use_qkv_bias", NeutralKey::False},
    {"qk_norm", NeutralKey::False},
    {"use_qk_norm", NeutralKey::False},
    {"clip_qkv", NeutralKey::Absent},
    {"attn_logit_softcapping", NeutralKey::Absent},
    {"query_pre_attn_scalar", NeutralKey::Absent},
    {"attention_multiplier", NeutralKey::Absent},
    {"alibi", NeutralKey::False},
    {"multi_query", NeutralKey::False},
    {"use_parallel_residual", NeutralKey::False},
    {"parallel_attn", NeutralKey::False},
    // Other positions.
    {"partial_rotary_factor", NeutralKey::One},
    {"rotary_pct", NeutralKey::One},
    {"rope_interleaved", NeutralKey::False},
    {"rope_local_base_freq", NeutralKey::Absent},
    // Dropout elsewhere.
    {"hidden_dropout", NeutralKey::Zero},
    {"hidden_dropout_prob", NeutralKey::Zero},
    {"attention_probs_dropout_prob", NeutralKey::Zero},
    {"resid_pdrop", NeutralKey::Zero},
    {"embd_pdrop", NeutralKey::Zero},
    {"attn_pdrop", NeutralKey::Zero},
    {"dropout", NeutralKey::Zero},
    {"layerdrop", NeutralKey::Zero},
    // Scales and caps.
    {"embedding_multiplier", NeutralKey::One},
    {"residual_multiplier", NeutralKey::One},
    {"logits_scaling", NeutralKey::One},
    {"logit_scale", NeutralKey::One},
    {"lm_head_multiplier", NeutralKey::One},
    {"final_logit_softcapping", NeutralKey::Absent},
    {"scale_embedding", NeutralKey::False},
    {"scale_emb", NeutralKey::One},
    {"scale_depth", NeutralKey::Absent},
    {"dim_model_base", NeutralKey::Absent},
    {"label_smoothing", NeutralKey::Zero},
    // Other bodies.
    {"num_local_experts", NeutralKey::Absent},
    {"num_experts", NeutralKey::Absent},
    {"n_routed_experts", NeutralKey::Absent},
    {"num_nextn_predict_layers", NeutralKey::Zero},
    {"is_encoder_decoder", NeutralKey::False},
    {"add_cross_attention", NeutralKey::False},
};

static bool isNeutral(const nlohmann::json &value,
                      NeutralKey::Neutral neutral) {
  switch (neutral) {
  case NeutralKey::False:
    return value.is_boolean() && !value.get<bool>();
  case NeutralKey::Zero:
    return value.is_number() && value.get<double>() == 0.0;
  case NeutralKey::One:
    return value.is_number() && value.get<double>() == 1.0;
  case NeutralKey::Absent:
    return false;
  case NeutralKey::Empty:
    return (value.is_object() || value.is_array()) && value.empty();
  }
  return false;
}

static StringRef ruleOf(NeutralKey::Neutral neutral) {
  switch (neutral) {
  case NeutralKey::False:
    return "false";
  case NeutralKey::Zero:
    return "0";
  case NeutralKey::One:
    return "1";
  case NeutralKey::Absent:
    return "no such key or null";
  case NeutralKey::Empty:
    return "no elements";
  }
  return "";
}

static void checkUnsupported(Config &config) {
  for (const NeutralKey &entry : neutralKeys)
    if (const nlohmann::json *value = config.find(entry.key);
        value && !isNeutral(*value, entry.neutral))
      config.error(entry.key)
          << "expected " << ruleOf(entry.neutral) << ", got "
          << shortText(*value)
          << "; it changes the computation and is not supported";
  // silu and swish are two names of one function.
  std::string activation = config.text("hidden_act", "silu");
  if (!config.failed() && activation != "silu" && activation != "swish")
    config.error("hidden_act") << "expected \"silu\", got \"" << activation
                               << "\"; other activations are not supported";
  if (const nlohmann::json *kinds = config.find("layer_types"))
    if (!kinds->is_array() || llvm::any_of(*kinds, [](const auto &kind) {
          return kind != "full_attention";
        }))
      config.error("layer_types")
          << "expected \"full_attention\" in every layer, got "
          << shortText(*kinds) << "; other kinds are not supported";
  if (const nlohmann::json *names = config.find("architectures"))
    if (!names->is_array() || llvm::none_of(*names, [](const auto &name) {
          return name == "LlamaForCausalLM" || name == "LlamaModel";
        }))
      config.error("architectures")
          << "expected \"LlamaForCausalLM\", got " << shortText(*names)
          << "; other heads are not supported";
}

/// The scaling in the object at `key`: `rope_scaling` or `rope_parameters`.
static RopeScaling readScaling(Config &config, StringRef key) {
  RopeScaling scaling;
  auto inner = [&](StringRef name) { return (key + "." + name).str(); };
  // transformers 5 may hold one object per kind of layer.
  for (StringRef kind : {"full_attention", "sliding_attention"})
    if (config.find(inner(kind)))
      config.error(inner(kind)) << "rotary parameters per kind of layer are "
                                   "not supported";
  std::string older = config.text(inner("type"), "");
  std::string type = config.text(inner("rope_type"), older);
  if (!older.empty() && type != older)
    config.error(inner("rope_type"))
        << "expected the value of '" << inner("type") << "', \"" << older
        << "\", got \"" << type << "\"";
  for (StringRef name :
       {"attention_factor", "mrope_section", "long_factor", "short_factor"})
    if (config.find(inner(name)))
      config.expected(inner(name), "no such key; it changes the computation "
                                   "and is not supported");
  if (const nlohmann::json *part = config.find(inner("partial_rotary_factor"));
      part && *part != 1.0)
    config.expected(inner("partial_rotary_factor"), "1");
  if (type.empty() || type == "default")
    return scaling;
  if (type != "linear" && type != "llama3") {
    config.error(inner(config.find(inner("rope_type")) ? "rope_type" : "type"))
        << "expected \"default\", \"linear\" or \"llama3\", got \"" << type
        << "\"; other kinds are not supported";
    return scaling;
  }
  auto positive = [](double value) { return value > 0; };
  scaling.factor = config.real(inner("factor"), {}, "a number of at least 1",
                               [](double value) { return value >= 1; });
  scaling.kind = RopeScaling::Kind::Linear;
  if (type == "linear")
    return scaling;
  scaling.kind = RopeScaling::Kind::Llama3;
  scaling.lowFrequencyFactor =
      config.real(inner("low_freq_factor"), {}, "a number above 0", positive);
  scaling.highFrequencyFactor =
      config.real(inner("high_freq_factor"), {}, "a number above 0", positive);
  scaling.originalContext =
      config.size(inner("original_max_position_embeddings"));
  if (!config.failed() &&
      scaling.highFrequencyFactor <= scaling.lowFrequencyFactor)
    config.error(inner("high_freq_factor"))
        << "expected more than '" << inner("low_freq_factor") << "', got "
        << scaling.highFrequencyFactor << " and " << scaling.lowFrequencyFactor;
  return scaling;
}

/// Theta and scaling from either spelling; both at once must agree.
static void readRotary(Config &config, LlamaConfig &llama) {
  auto above = [](double value) { return value > 0; };
  constexpr double defaultTheta = 10000.0;
  StringRef rule = "a number above 0";
  for (StringRef key : {"rope_parameters", "rope_scaling"})
    if (const nlohmann::json *value = config.find(key);
        value && !value->is_object()) {
      config.expected(key, "an object or null");
      return;
    }
  llama.ropeTheta = config.real("rope_theta", defaultTheta, rule, above);
  StringRef scalingKey = "rope_scaling";
  if (config.find("rope_parameters")) {
    double theta =
        config.real("rope_parameters.rope_theta", llama.ropeTheta, rule, above);
    if (config.find("rope_theta") && theta != llama.ropeTheta)
      config.error("rope_theta")
          << "expected the value of 'rope_parameters.rope_theta', " << theta
          << ", got " << llama.ropeTheta;
    llama.ropeTheta = theta;
    if (const nlohmann::json *older = config.find("rope_scaling"))
      for (const auto &[name, value] : older->items())
        if (const nlohmann::json *newer =
                config.find("rope_parameters." + name);
            name != "type" && (!newer || *newer != value))
          config.error(("rope_scaling." + name).c_str())
              << "expected the value of 'rope_parameters." << name << "', "
              << (newer ? shortText(*newer) : "nothing") << ", got "
              << shortText(value);
    scalingKey = "rope_parameters";
  } else if (config.find("rope_scaling.rope_theta")) {
    llama.ropeTheta = config.real("rope_scaling.rope_theta", {}, rule, above);
  }
  llama.scaling = readScaling(config, scalingKey);
}

/// Rotary frequencies stand in the IR one by one.
static constexpr int64_t maxHeadSize = 65536;

static void checkHeads(Config &config, const LlamaConfig &llama) {
  if (!config.find("head_dim") && llama.embed % llama.heads != 0)
    config.error("num_attention_heads")
        << "expected a divisor of 'hidden_size', got " << llama.heads << " and "
        << llama.embed;
  if (llama.heads % llama.keyHeads != 0)
    config.error("num_key_value_heads")
        << "expected a divisor of 'num_attention_heads', got " << llama.keyHeads
        << " and " << llama.heads;
  StringRef key = config.find("head_dim") ? "head_dim" : "hidden_size";
  if (llama.headSize % 2 != 0)
    config.error(key) << "expected an even head size for rotary embedding, got "
                      << llama.headSize;
  if (llama.headSize > maxHeadSize)
    config.error(key) << "expected a head size of at most " << maxHeadSize
                      << ", got " << llama.headSize;
}

FailureOr<LlamaConfig> LlamaConfig::read(Config &config) {
  LlamaConfig llama;
  checkUnsupported(config);
  llama.vocabulary = config.size("vocab_size");
  llama.embed = config.size("hidden_size");
  llama.feedForward = config.size("intermediate_size");
  llama.layers = config.size("num_hidden_layers", {}, Config::maxLayers);
  llama.heads = config.size("num_attention_heads");
  llama.keyHeads = config.size("num_key_value_heads", llama.heads);
  llama.headSize =
      config.size("head_dim", std::max<int64_t>(1, llama.embed / llama.heads));
  llama.normEpsilon =
      config.real("rms_norm_eps", 1e-6, "a number from 0 to 1",
                  [](double value) { return value >= 0 && value <= 1; });
  llama.initializerRange =
      config.real("initializer_range", 0.02, "a number from 0 to 1",
                  [](double value) { return value >= 0 && value <= 1; });
  llama.tied = config.flag("tie_word_embeddings", false);
  readRotary(config, llama);
  if (!config.failed())
    checkHeads(config, llama);
  if (config.failed())
    return failure();
  return llama;
}
