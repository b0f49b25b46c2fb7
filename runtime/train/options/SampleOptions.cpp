// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/options/SampleOptions.h"
#include "runtime/text/Text.h"

namespace rota {

OptionRows sampleRows(SampleOptions &o) {
  const char *group = "Samples";
  using namespace commands;
  return {{"prompt-tokens", group, "N,...",
           "Tokens that the model continues; in training after "
           "'sample-interval' steps",
           train | generate, NumberList(o.prompt), 0, kMaxCount},
          {"sample-interval", group, "N",
           "Steps between samples; 0: after the last step only", train,
           &o.interval, 0, kMaxCount},
          {"sample-tokens", group, "K", "Tokens of a sample, at most", train,
           &o.tokens, 1, kMaxCount},
          {"tokens", group, "K", "Tokens to continue the prompt with, at most",
           generate, &o.tokens, 1, kMaxCount},
          {kStopTokens, group, "N,...",
           "Tokens that end a continuation, which has the one that comes "
           "(of rota: eos_token_id of generation_config.json or config.json, "
           "or the tokenizer's end token)",
           train | generate, NumberList(o.stops), 0, kMaxCount},
          {"temperature", group, "X",
           "Logits are divided by it before a token is drawn; 0: the most "
           "likely token is taken",
           train | generate, &o.temperature, 0, 1e6},
          {"top-p", group, "X",
           "Tokens are drawn from the most likely ones that have this "
           "probability together, above 0 and at most 1",
           train | generate, &o.topP, 0, 1},
          {"sample-decoder", group, "IN,OUT",
           "Descriptors of a program that reads lines of tokens and answers "
           "with their text, each a line with a JSON string: `rota train` "
           "starts one for 'sample-prompt'",
           train, NumberList(o.decoder), 0, 1 << 20}};
}

OptionMistake checkSampleOptions(const SampleOptions &o) {
  if (!(o.topP > 0.0))
    return {"top-p", "expected a number above 0 and at most 1, got " +
                         numberText(o.topP)};
  if (!o.decoder.empty() && o.decoder.size() != 2)
    return {"sample-decoder", "expected two descriptors, got " +
                                  std::to_string(o.decoder.size())};
  return {};
}

OptionMistake checkPrompt(const SampleOptions &o) {
  if (o.isOn() || o.interval == 0)
    return {};
  return {"sample-interval",
          "expected a prompt beside it: 'prompt-tokens', or of `rota train` "
          "'sample-prompt'"};
}

} // namespace rota
