// SPDX-License-Identifier: Apache-2.0
//
// What the files beside a tokenizer say of it: tokenizer_config.json,
// chat_template.jinja, generation_config.json and config.json of a hub folder.
#ifndef ROTA_RUNTIME_TOKENIZER_TOKENIZERSETTINGS_H
#define ROTA_RUNTIME_TOKENIZER_TOKENIZERSETTINGS_H

#include "runtime/documents/Records.h"
#include "runtime/tokenizer/Tokenizer.h"

namespace rota {

struct TokenizerSettings {
  std::string beginText, endText; // bos_token, eos_token; empty: not said
  std::optional<int32_t> endToken;
  std::string endSource;    // the file that says `endToken`
  std::string chatTemplate; // a program of Jinja; empty: none
  std::string chatSource;   // the file that has it
};

/// The settings in the folder of the tokenizer's file. Files that are not there
/// say nothing. Throws InputError for one that is wrong, or that names an end
/// token which the tokenizer does not have.
TokenizerSettings readSettings(const Tokenizer &tokenizer);

/// How a chat template is found: by its name, or, where that is empty, by the
/// text of the settings' template. Sets `chat` or `chatMissing`. Throws
/// InputError for an unknown name.
void chooseChatTemplate(const std::string &name,
                        const TokenizerSettings &settings,
                        RecordOptions &records);

/// The end token that a generation_config.json or a config.json says, the first
/// of several. None where it says none or is not there. Throws InputError for
/// one that is not among the `vocabulary` tokens of `owner`.
std::optional<int32_t> readEndNumber(const std::string &path,
                                     const std::string &owner,
                                     int64_t vocabulary);

/// The `eos_token_id` of a generation_config.json or a config.json, there also
/// under `text_config`: a number or a list of them. Empty: the file says none,
/// or is not there. Throws InputError for other values.
std::vector<int64_t> readEndTokens(const std::string &path);

/// The vocabulary that a model's config.json says; 0: it says none, or the file
/// is not there.
int64_t readVocabulary(const std::string &path);

} // namespace rota

#endif // ROTA_RUNTIME_TOKENIZER_TOKENIZERSETTINGS_H
