// SPDX-License-Identifier: Apache-2.0
//
// The model that flags of Megatron-LM describe.
#include "tools/planner/engines/Megatron.h"

#include <algorithm>

namespace rota::engines::megatron {

namespace {

/// Makes a model of flags, with the engine's values for those not given.
class ModelReader {
public:
  ModelReader(const Flags &flags, std::string &error)
      : flags(flags), error(error) {}

  bool read() {
    return requireSizes() && readForm() && readFamily() && readHeads() &&
           readVocabulary() && readExperts();
  }

  EngineModel model;

private:
  bool fail(std::string message) {
    error = std::move(message);
    return false;
  }
  bool failAt(const char *flag, const std::string &message) {
    return fail(flags.messageAt(flag, message));
  }

  bool requireSizes() {
    for (auto [flag, value] : {std::pair("--num-layers", flags.layers),
                               {"--hidden-size", flags.embed},
                               {"--num-attention-heads", flags.heads},
                               {"--max-position-embeddings", flags.positions}})
      if (!value)
        return fail(std::string("'") + flag +
                    "' is missing; or 'model' names a configuration");
    model.layers = *flags.layers;
    model.embed = *flags.embed;
    model.heads = *flags.heads;
    model.positions = *flags.positions;
    model.feedForward = flags.feedForward.value_or(
        flags.isGated ? model.embed * 8 / 3 / 64 * 64 : 4 * model.embed);
    if (!flags.headSize && model.embed % model.heads != 0)
      return failAt("--num-attention-heads",
                    "expected a divisor of '--hidden-size', got " +
                        std::to_string(model.heads) + " and " +
                        std::to_string(model.embed));
    return true;
  }

  bool readForm() {
    model.normEpsilon = flags.normEpsilon.value_or(1e-5);
    model.initializerRange = flags.initializerRange.value_or(0.02);
    model.tied = !flags.isUntied;
    model.rotaryBase = double(flags.rotaryBase.value_or(10000));
    if (flags.scalesRotary)
      model.rotaryFactor = flags.rotaryFactor.value_or(8);
    if (flags.rotaryShare.value_or(1) != 1)
      return failAt("--rotary-percent",
                    "expected 1, got " + numberText(*flags.rotaryShare));
    if (!flags.window)
      return true;
    char *end = nullptr;
    std::string text = *flags.window;
    std::erase_if(text, [](char c) { return c == '(' || c == ')'; });
    long long left = std::strtoll(text.c_str(), &end, 10);
    if (end == text.c_str() || left < 0 || std::string_view(end) != ",0")
      return failAt(
          "--window-size",
          "expected positions before and 0 after, as in 4095,0, got '" +
              *flags.window + "'");
    model.window = left + 1;
    return true;
  }

  std::string positionKind() const {
    return flags.usesRotary ? "rope"
                            : flags.positionKind.value_or("learned_absolute");
  }

  /// The flags that decide the family, for messages.
  std::string given() const {
    std::string text = "--normalization " + flags.norm.value_or("LayerNorm") +
                       " --position-embedding-type " + positionKind();
    for (auto [flag, value] :
         {std::pair("--swiglu", flags.isGated),
          {"--disable-bias-linear", flags.hasNoBias},
          {"--add-qkv-bias", flags.biasesQueries},
          {"--qk-layernorm", flags.normsQueries},
          {"--group-query-attention", flags.groupsQueries}})
      if (value)
        text += std::string(" ") + flag;
    if (flags.experts)
      text += " --num-experts " + std::to_string(*flags.experts);
    if (flags.window)
      text += " --window-size " + *flags.window;
    return text;
  }

  bool readFamily() {
    bool isGpt2 = flags.norm.value_or("LayerNorm") == "LayerNorm" &&
                  positionKind() == "learned_absolute" && !flags.isGated &&
                  !flags.hasNoBias && !flags.normsQueries &&
                  !flags.biasesQueries && !flags.groupsQueries &&
                  !flags.experts && !flags.window;
    bool isLlama = flags.norm == "RMSNorm" && positionKind() == "rope" &&
                   flags.isGated && flags.hasNoBias;
    bool hasBoth = flags.biasesQueries && flags.normsQueries;
    bool hasWindow =
        model.window && (flags.biasesQueries || flags.normsQueries);
    if (isGpt2)
      model.family = "gpt2";
    else if (!isLlama || hasBoth || hasWindow ||
             (flags.experts && flags.biasesQueries))
      return fail("expected the flags of one of " + modelFamilies() +
                  ", or a 'model' beside them, got " + given());
    else if (flags.experts)
      model.family = flags.normsQueries ? "qwen3_moe" : "mixtral";
    else
      model.family = flags.normsQueries    ? "qwen3"
                     : flags.biasesQueries ? "qwen2"
                     : model.window        ? "mistral"
                                           : "llama";
    return true;
  }

  bool readHeads() {
    model.headSize = flags.headSize.value_or(model.embed / model.heads);
    model.keyHeads =
        flags.groupsQueries ? flags.queryGroups.value_or(1) : model.heads;
    if (model.heads % model.keyHeads != 0)
      return failAt("--num-query-groups",
                    "expected a divisor of '--num-attention-heads', got " +
                        std::to_string(model.keyHeads) + " and " +
                        std::to_string(model.heads));
    if (model.family == "gpt2" && model.headSize * model.heads != model.embed)
      return failAt("--kv-channels",
                    "expected '--hidden-size' / '--num-attention-heads' in a "
                    "model of the family 'gpt2', got " +
                        std::to_string(model.headSize));
    return true;
  }

  /// Padding to a multiple of the ranks alone is Rota's own.
  bool readVocabulary() {
    if (!flags.vocabulary && !flags.paddedVocabulary)
      return fail("'--vocab-size' is missing: a tokenizer's size is not in "
                  "the flags");
    if (flags.paddedVocabulary) {
      model.vocabulary = *flags.paddedVocabulary;
      return true;
    }
    int64_t divisor = flags.vocabularyDivisor.value_or(128);
    int64_t multiple = divisor == 1 || flags.doesNotPad
                           ? 1
                           : divisor * flags.tensor.value_or(1);
    model.vocabulary = (*flags.vocabulary + multiple - 1) / multiple * multiple;
    return true;
  }

  bool readExperts() {
    if (!flags.experts)
      return true;
    model.experts = *flags.experts;
    model.choices = flags.choices.value_or(2);
    model.expertFeedForward =
        flags.expertFeedForward.value_or(model.feedForward);
    model.normalizesChoices = !flags.choosesAfterSoftmax;
    bool isMixtral = model.family == "mixtral";
    if (isMixtral && !model.normalizesChoices)
      return failAt("--moe-router-pre-softmax",
                    "expected none without '--qk-layernorm', as the family "
                    "'mixtral' divides weights of choices by their sum");
    if (isMixtral)
      model.feedForward = model.expertFeedForward;
    std::string balance = flags.balance.value_or("aux_loss");
    if (balance != "none" && balance != "aux_loss" &&
        balance != "seq_aux_loss" && balance != "global_aux_loss")
      return failAt("--moe-router-load-balancing-type",
                    "expected none or one loss, got '" + balance + "'");
    if (balance != "none" && flags.balanceLoss)
      model.balanceLoss = std::strtod(flags.balanceLoss->c_str(), nullptr);
    return true;
  }

  const Flags &flags;
  std::string &error;
};

} // namespace

std::optional<EngineModel> modelOf(const Flags &flags, std::string &error) {
  ModelReader reader(flags, error);
  return reader.read() ? std::optional(reader.model) : std::nullopt;
}

} // namespace rota::engines::megatron
