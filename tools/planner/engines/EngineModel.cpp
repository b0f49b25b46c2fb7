// SPDX-License-Identifier: Apache-2.0
//
// A model's sizes from a config.json and back.
#include "tools/planner/engines/EngineRun.h"

#include "runtime/program/JsonText.h"
#include "runtime/text/Text.h"
#include "tools/planner/LooseJson.h"

#include <algorithm>
#include <iterator>

namespace rota::engines {

using json::Json;

namespace {

/// A family, and the values that its files leave out.
struct FamilyRow {
  const char *name;
  const char *architecture;
  double normEpsilon, rotaryBase; // where a file lacks the key
  bool hasExperts = false;
};

constexpr FamilyRow kFamilies[] = {
    {"gpt2", "GPT2LMHeadModel", 1e-5, 0},
    {"llama", "LlamaForCausalLM", 1e-6, 1e4},
    {"mistral", "MistralForCausalLM", 1e-6, 1e4},
    {"mixtral", "MixtralForCausalLM", 1e-5, 1e6, true},
    {"qwen2", "Qwen2ForCausalLM", 1e-6, 1e4},
    {"qwen3", "Qwen3ForCausalLM", 1e-6, 1e4},
    {"qwen3_moe", "Qwen3MoeForCausalLM", 1e-6, 1e4, true}};

const FamilyRow *findFamily(const std::string &name) {
  auto row = std::ranges::find_if(
      kFamilies, [&](const FamilyRow &row) { return row.name == name; });
  return row == std::end(kFamilies) ? nullptr : &*row;
}

/// Reads keys of a configuration and notes the first value that no EngineModel
/// has a place for.
class ConfigReader {
public:
  explicit ConfigReader(const Json &config) : config(config) {}

  std::string error; // empty: none

  double number(const char *key, double otherwise) const {
    return json::number(config, key).value_or(otherwise);
  }
  int64_t size(const char *key, int64_t otherwise = 0) const {
    return int64_t(number(key, double(otherwise)));
  }
  bool flag(const char *key, bool otherwise) const {
    const Json &value = json::member(config, key);
    return value.is_boolean() ? value.get<bool>() : otherwise;
  }
  /// Refuses a value other than `usual`.
  void demand(const char *key, const Json &usual) {
    const Json &value = json::member(config, key);
    if (!value.is_null() && value != usual)
      refuse(key, value);
  }
  void refuse(const std::string &key, const Json &value) {
    if (error.empty())
      error = "the model's '" + key + "': " + jsonText(value) +
              " has no equivalent in the settings that Rota knows";
  }

  const Json &config;
};

/// Either spelling of rotary settings.
void readRotary(ConfigReader &in, EngineModel &model, double base) {
  const Json &parameters = json::member(in.config, "rope_parameters");
  const Json &scaling = parameters.is_object()
                            ? parameters
                            : json::member(in.config, "rope_scaling");
  model.rotaryBase = json::number(parameters, "rope_theta")
                         .value_or(in.number("rope_theta", base));
  if (!scaling.is_object())
    return;
  std::string type = json::text(scaling, "rope_type");
  if (type.empty())
    type = json::text(scaling, "type");
  if (type.empty() || type == "default")
    return;
  bool isPublished =
      type == "llama3" && json::number(scaling, "low_freq_factor") == 1.0 &&
      json::number(scaling, "high_freq_factor") == 4.0 &&
      json::number(scaling, "original_max_position_embeddings") == 8192.0;
  if (!isPublished)
    in.refuse("rope_scaling", scaling);
  model.rotaryFactor = json::number(scaling, "factor");
}

void readGpt2(ConfigReader &in, EngineModel &model) {
  model.embed = in.size("n_embd");
  model.layers = in.size("n_layer");
  model.heads = model.keyHeads = in.size("n_head");
  model.headSize = model.embed / std::max<int64_t>(1, model.heads);
  model.feedForward = in.size("n_inner", 4 * model.embed);
  model.positions = in.size("n_positions", 1024);
  model.normEpsilon = in.number("layer_norm_epsilon", 1e-5);
  model.tied = in.flag("tie_word_embeddings", true);
}

void readExperts(ConfigReader &in, EngineModel &model) {
  bool isMixtral = model.family == "mixtral";
  model.experts =
      isMixtral ? in.size("num_local_experts", 8)
                : in.size("num_experts", in.size("num_local_experts", 128));
  model.choices = in.size("num_experts_per_tok", isMixtral ? 2 : 8);
  model.expertFeedForward =
      isMixtral ? model.feedForward : in.size("moe_intermediate_size", 768);
  model.normalizesChoices = isMixtral || in.flag("norm_topk_prob", false);
  if (in.flag("output_router_logits", false))
    model.balanceLoss = in.number("router_aux_loss_coef", 0.001);
  in.demand("decoder_sparse_step", 1);
  in.demand("mlp_only_layers", Json::array());
}

void readLlama(ConfigReader &in, EngineModel &model, const FamilyRow &row) {
  model.embed = in.size("hidden_size");
  model.layers = in.size("num_hidden_layers");
  model.heads = in.size("num_attention_heads");
  model.keyHeads = in.size("num_key_value_heads", model.heads);
  bool isQwen3 = model.family.starts_with("qwen3");
  model.headSize =
      in.size("head_dim",
              isQwen3 ? 128 : model.embed / std::max<int64_t>(1, model.heads));
  model.feedForward = in.size("intermediate_size");
  model.positions = in.size("max_position_embeddings");
  model.normEpsilon = in.number("rms_norm_eps", row.normEpsilon);
  model.tied = in.flag("tie_word_embeddings", false);
  in.demand("hidden_act", "silu");
  in.demand("attention_bias", false);
  in.demand("mlp_bias", false);
  readRotary(in, model, row.rotaryBase);
  bool isMistral = model.family == "mistral";
  if (isMistral && !in.config.contains("sliding_window"))
    model.window = 4096;
  if (isMistral || model.family == "mixtral") {
    if (auto window = json::number(in.config, "sliding_window"))
      model.window = int64_t(*window);
  } else {
    in.demand("use_sliding_window", false);
  }
  if (row.hasExperts)
    readExperts(in, model);
}

Json rotaryJson(double factor) {
  return {{"rope_type", "llama3"},
          {"factor", factor},
          {"low_freq_factor", 1.0},
          {"high_freq_factor", 4.0},
          {"original_max_position_embeddings", 8192}};
}

Json gpt2Json(const EngineModel &model) {
  return {{"n_embd", model.embed},
          {"n_layer", model.layers},
          {"n_head", model.heads},
          {"n_inner", model.feedForward},
          {"n_positions", model.positions},
          {"activation_function", "gelu_new"},
          {"layer_norm_epsilon", model.normEpsilon},
          {"embd_pdrop", 0.0},
          {"attn_pdrop", 0.0},
          {"resid_pdrop", 0.0}};
}

Json llamaJson(const EngineModel &model) {
  Json config = {{"hidden_size", model.embed},
                 {"num_hidden_layers", model.layers},
                 {"num_attention_heads", model.heads},
                 {"num_key_value_heads", model.keyHeads},
                 {"head_dim", model.headSize},
                 {"intermediate_size", model.feedForward},
                 {"max_position_embeddings", model.positions},
                 {"hidden_act", "silu"},
                 {"rms_norm_eps", model.normEpsilon},
                 {"rope_theta", model.rotaryBase}};
  if (model.rotaryFactor)
    config["rope_scaling"] = rotaryJson(*model.rotaryFactor);
  if (model.family == "mistral" || model.family == "mixtral")
    config["sliding_window"] = model.window ? Json(*model.window) : Json();
  if (model.experts == 0)
    return config;
  bool isMixtral = model.family == "mixtral";
  config[isMixtral ? "num_local_experts" : "num_experts"] = model.experts;
  config["num_experts_per_tok"] = model.choices;
  if (!isMixtral) {
    config["moe_intermediate_size"] = model.expertFeedForward;
    config["norm_topk_prob"] = model.normalizesChoices;
  }
  config["output_router_logits"] = model.balanceLoss > 0;
  config["router_aux_loss_coef"] = model.balanceLoss;
  return config;
}

} // namespace

std::string modelFamilies() {
  std::string names;
  for (const FamilyRow &row : kFamilies)
    names += (names.empty() ? "" : ", ") + std::string(row.name);
  return names;
}

std::optional<EngineModel> readModel(const std::string &config,
                                     std::string &error) {
  Json parsed = json::parseJson(config);
  ConfigReader in(parsed);
  EngineModel model;
  model.family = json::text(parsed, "model_type");
  const FamilyRow *row = findFamily(model.family);
  if (!row) {
    error =
        "expected a model of a family whose settings Rota knows, " +
        modelFamilies() + ", got " +
        (config.empty() ? "a module of one's own" : "'" + model.family + "'");
    return std::nullopt;
  }
  model.vocabulary = in.size("vocab_size");
  model.initializerRange = in.number("initializer_range", 0.02);
  if (model.family == "gpt2")
    readGpt2(in, model);
  else
    readLlama(in, model, *row);
  if (in.error.empty())
    return model;
  error = in.error;
  return std::nullopt;
}

std::string writeModel(const EngineModel &model) {
  const FamilyRow &row = *findFamily(model.family);
  Json config = {{"model_type", model.family},
                 {"architectures", Json::array({row.architecture})},
                 {"vocab_size", model.vocabulary},
                 {"initializer_range", model.initializerRange},
                 {"tie_word_embeddings", model.tied}};
  config.update(model.family == "gpt2" ? gpt2Json(model) : llamaJson(model));
  return jsonText(config, 2) + "\n";
}

} // namespace rota::engines
