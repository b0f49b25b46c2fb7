// SPDX-License-Identifier: Apache-2.0
//
// The table of keys with their neutral values, and the checks.
#include "models/UnsupportedKeys.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::rota;

namespace {

/// A key that would change the computation unless it has a neutral value.
struct NeutralKey {
  StringLiteral key;
  enum Neutral { False, Zero, One, Absent, Empty, FullAttention } neutral;
};

} // namespace

static constexpr NeutralKey neutralKeys[] = {
    // Biases, dropout and formats.
    {"attention_bias", NeutralKey::False},
    {"mlp_bias", NeutralKey::False},
    {"attention_dropout", NeutralKey::Zero},
    {"pretraining_tp", NeutralKey::One},
    {"quantization_config", NeutralKey::Absent},
    {"pruned_heads", NeutralKey::Empty},
    // Other attention.
    {"sliding_window", NeutralKey::Absent},
    {"use_sliding_window", NeutralKey::False},
    {"layer_types", NeutralKey::FullAttention},
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
    {"use_mrope", NeutralKey::False},
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
  case NeutralKey::FullAttention:
    return value.is_array() && llvm::all_of(value, [](const auto &kind) {
             return kind == "full_attention";
           });
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
  case NeutralKey::FullAttention:
    return "\"full_attention\" in every layer";
  }
  return "";
}

void mlir::rota::refuseUnsupportedKeys(Config &config) {
  for (const NeutralKey &entry : neutralKeys) {
    if (config.wasRead(entry.key))
      continue;
    const nlohmann::json *value = config.find(entry.key);
    if (value && !isNeutral(*value, entry.neutral))
      config.error(entry.key)
          << "expected " << ruleOf(entry.neutral) << ", got "
          << shortText(*value)
          << "; it changes the computation and is not supported";
  }
}
