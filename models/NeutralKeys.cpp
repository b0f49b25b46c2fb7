// SPDX-License-Identifier: Apache-2.0
//
// The table of keys that change nothing in any family, and the check of keys.
#include "models/NeutralKeys.h"

#include "runtime/text/Nearest.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::rota;

static constexpr NeutralKey commonKeys[] = {
    // Names, and what programs other than a trainer read.
    {"_name_or_path", NeutralKey::Any},
    {"architectures", NeutralKey::Any}, // checked where the family has names
    {"transformers_version", NeutralKey::Any},
    {"auto_map", NeutralKey::Any},
    {"tokenizer_class", NeutralKey::Any},
    {"finetuning_task", NeutralKey::Any},
    {"task_specific_params", NeutralKey::Any},
    {"problem_type", NeutralKey::Any},
    {"id2label", NeutralKey::Any},
    {"label2id", NeutralKey::Any},
    {"unsloth_fixed", NeutralKey::Any},
    {"unsloth_version", NeutralKey::Any},
    // Tokens with a meaning. Data have them already.
    {"bos_token_id", NeutralKey::Any},
    {"eos_token_id", NeutralKey::Any},
    {"pad_token_id", NeutralKey::Any},
    {"sep_token_id", NeutralKey::Any},
    {"decoder_start_token_id", NeutralKey::Any},
    {"forced_bos_token_id", NeutralKey::Any},
    {"forced_eos_token_id", NeutralKey::Any},
    {"prefix", NeutralKey::Any},
    // Keys for programs that run the model, and their results. The context that
    // the model was made for bounds no computation.
    {"max_position_embeddings", NeutralKey::Any},
    {"use_cache", NeutralKey::Any},
    {"cache_implementation", NeutralKey::Any},
    {"chunk_size_feed_forward", NeutralKey::Any},
    {"attn_implementation", NeutralKey::Any},
    {"_attn_implementation", NeutralKey::Any},
    {"_attn_implementation_autoset", NeutralKey::Any},
    {"torchscript", NeutralKey::Any},
    {"use_bfloat16", NeutralKey::Any}, // for TPUs; `dtype` is read
    {"tf_legacy_loss", NeutralKey::Any},
    {"return_dict", NeutralKey::Any},
    {"output_attentions", NeutralKey::Any},
    {"output_hidden_states", NeutralKey::Any},
    {"is_decoder", NeutralKey::Any},
    // Generation, as transformers 4 writes it beside the model.
    {"max_length", NeutralKey::Any},
    {"min_length", NeutralKey::Any},
    {"do_sample", NeutralKey::Any},
    {"early_stopping", NeutralKey::Any},
    {"num_beams", NeutralKey::Any},
    {"num_beam_groups", NeutralKey::Any},
    {"diversity_penalty", NeutralKey::Any},
    {"temperature", NeutralKey::Any},
    {"top_k", NeutralKey::Any},
    {"top_p", NeutralKey::Any},
    {"typical_p", NeutralKey::Any},
    {"repetition_penalty", NeutralKey::Any},
    {"length_penalty", NeutralKey::Any},
    {"no_repeat_ngram_size", NeutralKey::Any},
    {"encoder_no_repeat_ngram_size", NeutralKey::Any},
    {"bad_words_ids", NeutralKey::Any},
    {"num_return_sequences", NeutralKey::Any},
    {"output_scores", NeutralKey::Any},
    {"return_dict_in_generate", NeutralKey::Any},
    {"remove_invalid_values", NeutralKey::Any},
    {"exponential_decay_length_penalty", NeutralKey::Any},
    {"suppress_tokens", NeutralKey::Any},
    {"begin_suppress_tokens", NeutralKey::Any},
    // The computation, unless they have these values.
    {"attention_bias", NeutralKey::False},
    {"attention_dropout", NeutralKey::Zero},
    {"partial_rotary_factor", NeutralKey::One},
    {"pretraining_tp", NeutralKey::One},
    {"pruned_heads", NeutralKey::Empty},
    {"layer_types", NeutralKey::FullAttention},
    {"num_nextn_predict_layers", NeutralKey::Zero},
    {"is_encoder_decoder", NeutralKey::False},
    {"add_cross_attention", NeutralKey::False},
    {"tie_encoder_decoder", NeutralKey::False},
};

static bool isNeutral(const nlohmann::json &value, NeutralKey::Values values) {
  switch (values) {
  case NeutralKey::Any:
    return true;
  case NeutralKey::False:
    return value.is_boolean() && !value.get<bool>();
  case NeutralKey::Zero:
    return value.is_number() && value.get<double>() == 0.0;
  case NeutralKey::One:
    return value.is_number() && value.get<double>() == 1.0;
  case NeutralKey::Empty:
    return (value.is_object() || value.is_array()) && value.empty();
  case NeutralKey::FullAttention:
    return value.is_array() && llvm::all_of(value, [](const auto &kind) {
             return kind == "full_attention";
           });
  }
  return false;
}

static StringRef ruleOf(NeutralKey::Values values) {
  switch (values) {
  case NeutralKey::Any:
    return "any value";
  case NeutralKey::False:
    return "false";
  case NeutralKey::Zero:
    return "0";
  case NeutralKey::One:
    return "1";
  case NeutralKey::Empty:
    return "no elements";
  case NeutralKey::FullAttention:
    return "\"full_attention\" in every layer";
  }
  return "";
}

/// " (did you mean 'NAME'?)" for the known key that is spelled most like `key`;
/// empty where none is near.
static std::string suggestion(StringRef key, ArrayRef<StringRef> known) {
  std::string nearest(::rota::nearestName(key, known));
  return nearest.empty() ? "" : " (did you mean '" + nearest + "'?)";
}

void mlir::rota::checkOtherKeys(Config &config, StringRef family,
                                ArrayRef<NeutralKey> ofFamily,
                                bool allowsUnknown) {
  auto rows = llvm::concat<const NeutralKey>(ofFamily, ArrayRef(commonKeys));
  SmallVector<StringRef> known = config.keysAskedFor();
  for (const NeutralKey &row : rows)
    known.push_back(row.key);
  auto isAllowed = [&](StringRef key) {
    return llvm::any_of(rows, [&](const NeutralKey &row) {
      return row.key == key && row.values == NeutralKey::Any;
    });
  };
  for (const auto &[key, value] : config.otherKeys(isAllowed)) {
    auto row = llvm::find_if(rows, [&, &key = key](const NeutralKey &row) {
      return row.key == key;
    });
    if (row != rows.end()) {
      if (!isNeutral(*value, row->values))
        config.error(key) << "expected " << ruleOf(row->values) << ", got "
                          << shortText(*value)
                          << "; it changes the computation and is not "
                             "supported";
    } else if (allowsUnknown) {
      config.warning(key) << "unknown key of the family '" << family
                          << "' is ignored, with the value "
                          << shortText(*value);
    } else {
      config.error(key) << "unknown key of the family '" << family
                        << "', with the value " << shortText(*value)
                        << suggestion(key, known)
                        << "; '--allow-unknown-keys' ignores it";
    }
  }
}
