// SPDX-License-Identifier: Apache-2.0
#include "runtime/tokenizer/files/TokenizerSettings.h"
#include "runtime/Error.h"
#include "runtime/files/JsonMistake.h"
#include "runtime/files/Nesting.h"

#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

namespace rota {

namespace fs = std::filesystem;
using Json = nlohmann::json;

static constexpr const char *kEndTokenKey = "eos_token_id";

namespace {

/// Nothing where there is no such file.
std::optional<std::string> readText(const fs::path &path) {
  constexpr uintmax_t kMost = 64 << 20;
  std::error_code error;
  if (!fs::is_regular_file(path, error))
    return std::nullopt;
  if (uintmax_t size = fs::file_size(path, error); error || size > kMost)
    throw InputError(fmt::format("'{}': expected a file of at most {} bytes, "
                                 "got {}",
                                 path.string(), kMost, size));
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  if (!file)
    throw InputError(fmt::format("cannot read '{}'", path.string()));
  return text.str();
}

/// An object; null where there is no such file.
Json readObject(const fs::path &path) {
  std::optional<std::string> text = readText(path);
  if (!text)
    return nullptr;
  if (std::string mistake = nestingMistake(*text); !mistake.empty())
    throw InputError(fmt::format("'{}': {}", path.string(), mistake));
  try {
    Json object = Json::parse(*text);
    if (object.is_object())
      return object;
  } catch (const Json::exception &error) {
    throw InputError(
        fmt::format("'{}': {}", path.string(), jsonMistake(error.what())));
  }
  throw InputError(fmt::format("'{}': expected an object", path.string()));
}

const Json *find(const Json &object, const char *key) {
  auto found = object.is_object() ? object.find(key) : object.end();
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

/// A token of tokenizer_config.json: a text, or an object with `content`.
std::string tokenText(const Json &config, const char *key) {
  const Json *value = find(config, key);
  if (value && value->is_object())
    value = find(*value, "content");
  return value && value->is_string() ? value->get<std::string>() : "";
}

/// A text, or the one with the name `default` in a list of objects.
std::string templateText(const Json &config) {
  const Json *value = find(config, "chat_template");
  if (value && value->is_string())
    return value->get<std::string>();
  if (value && value->is_array())
    for (const Json &each : *value)
      if (const Json *name = find(each, "name"), *text = find(each, "template");
          name && text && *name == "default" && text->is_string())
        return text->get<std::string>();
  return "";
}

} // namespace

std::optional<int32_t> readEndNumber(const std::string &path,
                                     const std::string &owner,
                                     int64_t vocabulary) {
  std::vector<int64_t> numbers = readEndTokens(path);
  if (numbers.empty())
    return std::nullopt;
  if (numbers.front() >= vocabulary)
    throw InputError(fmt::format(
        "'{}': '{}': expected a token of '{}', from 0 to {}, got {}", path,
        kEndTokenKey, owner, vocabulary - 1, numbers.front()));
  return static_cast<int32_t>(numbers.front());
}

TokenizerSettings readSettings(const Tokenizer &tokenizer) {
  TokenizerSettings settings;
  std::error_code error;
  if (!fs::is_regular_file(tokenizer.path, error)) // that of bytes has no file
    return settings;
  fs::path folder = fs::path(tokenizer.path).parent_path();
  fs::path path = folder / "tokenizer_config.json";
  Json config = readObject(path);
  settings.beginText = tokenText(config, "bos_token");
  settings.endText = tokenText(config, "eos_token");
  settings.chatTemplate = templateText(config);
  settings.chatSource = path.string();
  if (fs::path file = folder / "chat_template.jinja";
      std::optional<std::string> text = readText(file)) {
    settings.chatTemplate = *text;
    settings.chatSource = file.string();
  }
  if (!settings.endText.empty()) {
    settings.endToken = tokenizer.find(settings.endText);
    settings.endSource = path.string();
    if (!settings.endToken)
      throw InputError(fmt::format("'{}': 'eos_token': expected a token of "
                                   "'{}', got '{}'",
                                   path.string(), tokenizer.path,
                                   settings.endText));
    return settings;
  }
  for (const char *name : {"generation_config.json", "config.json"}) {
    settings.endSource = (folder / name).string();
    settings.endToken =
        readEndNumber(settings.endSource, tokenizer.path, tokenizer.vocabulary);
    if (settings.endToken)
      break;
  }
  return settings;
}

void chooseChatTemplate(const std::string &name,
                        const TokenizerSettings &settings,
                        RecordOptions &records) {
  const ChatTemplate *family =
      name.empty() ? recognizeChatTemplate(settings.chatTemplate)
                   : findChatTemplate(name);
  std::string rule = fmt::format("expected 'chat-template' to be one of {}",
                                 chatTemplateNames());
  if (!family && !name.empty())
    throw InputError(fmt::format("{}, got '{}'", rule, name));
  if (!family) {
    records.chatMissing =
        settings.chatTemplate.empty()
            ? fmt::format("{}: the tokenizer has no chat template", rule)
            : fmt::format("{}: the template of '{}' is none of these", rule,
                          settings.chatSource);
    return;
  }
  if (needsEnd(*family) && settings.endText.empty()) {
    records.chatMissing = fmt::format(
        "expected 'eos_token' in the tokenizer_config.json beside the "
        "tokenizer, which the chat template '{}' writes, got none",
        nameOf(*family));
    return;
  }
  records.chat = {family, settings.beginText, settings.endText};
}

std::vector<int64_t> readEndTokens(const std::string &path) {
  const Json config = readObject(path);
  const Json *value = find(config, kEndTokenKey);
  if (const Json *part = find(config, "text_config"); part && !value)
    value = find(*part, kEndTokenKey);
  if (!value)
    return {};
  std::vector<int64_t> tokens;
  for (const Json &token : value->is_array() ? *value : Json::array({*value})) {
    if (!token.is_number_integer() || token < 0)
      throw InputError(
          fmt::format("'{}': '{}': expected a token or a list of tokens, got "
                      "{}",
                      path, kEndTokenKey, value->dump()));
    tokens.push_back(token.get<int64_t>());
  }
  return tokens;
}

int64_t readVocabulary(const std::string &path) {
  const Json config = readObject(path);
  const Json *value = find(config, "vocab_size");
  return value && value->is_number_integer() ? value->get<int64_t>() : 0;
}

} // namespace rota
