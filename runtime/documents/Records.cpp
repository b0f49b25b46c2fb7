// SPDX-License-Identifier: Apache-2.0
#include "runtime/documents/Records.h"
#include "runtime/Error.h"
#include "runtime/files/JsonMistake.h"
#include "runtime/files/Nesting.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace rota {

using Json = nlohmann::json;

namespace {

/// The kind of a value, for messages.
std::string kindOf(const Json &value) {
  return value.is_null() ? "null"
                         : std::string("a value of type ") + value.type_name();
}

/// Moves a text out of a record.
std::string takeText(Json &record, const std::string &field) {
  auto found = record.find(field);
  if (found == record.end())
    throw InputError(fmt::format("expected a field '{}', got none", field));
  if (!found->is_string())
    throw InputError(
        fmt::format("'{}': expected text, got {}", field, kindOf(*found)));
  return std::move(found->get_ref<std::string &>());
}

ChatRole roleOf(Json &message) {
  std::string role = takeText(message, "role");
  if (role == "system")
    return ChatRole::System;
  if (role == "user")
    return ChatRole::User;
  if (role == "assistant")
    return ChatRole::Assistant;
  throw InputError(fmt::format(
      "'role': expected system, user or assistant, got '{}'", role));
}

/// The text of a message: a text, or the texts of a list of parts, one after
/// the other.
std::string takeContent(Json &message) {
  constexpr const char *field = "content";
  auto found = message.find(field);
  if (found == message.end() || !found->is_array())
    return takeText(message, field);
  std::string text;
  size_t number = 0;
  for (Json &part : *found)
    try {
      ++number;
      if (!part.is_object())
        throw InputError(
            fmt::format("expected an object, got {}", kindOf(part)));
      if (std::string type = takeText(part, "type"); type != kTextField)
        throw InputError(
            fmt::format("'type': expected {}, got '{}'", kTextField, type));
      text += takeText(part, kTextField);
    } catch (const InputError &error) {
      throw InputError(fmt::format("'{}': part {} of {}: {}", field, number,
                                   found->size(), error.what()));
    }
  return text;
}

/// Throws InputError where one of these fields is there and says something.
void requireNone(const Json &object, std::initializer_list<const char *> fields,
                 const char *what) {
  for (const char *field : fields)
    if (auto found = object.find(field);
        found != object.end() && !found->empty())
      throw InputError(fmt::format("expected {} without '{}', which chat "
                                   "templates here do not write",
                                   what, field));
}

ChatMessage readMessage(Json &message) {
  if (!message.is_object())
    throw InputError(
        fmt::format("expected an object, got {}", kindOf(message)));
  ChatRole role = roleOf(message);
  requireNone(message, {"tool_calls", "function_call", "tool_call_id"},
              "a message");
  ChatMessage read{role, takeContent(message), {}, {}};
  auto has = [&](const char *field) {
    auto found = message.find(field);
    return found != message.end() && !found->is_null();
  };
  if (has("reasoning_content"))
    read.reasoning = takeText(message, "reasoning_content");
  if (has("thinking"))
    read.thinking = takeText(message, "thinking");
  return read;
}

Document readConversation(Json &record, const RecordOptions &options) {
  Json &messages = record["messages"];
  if (!options.chat)
    throw InputError(options.chatMissing);
  if (!messages.is_array() || messages.empty())
    throw InputError(fmt::format(
        "'messages': expected an array of at least one message, got {}",
        messages.is_array() ? "none" : kindOf(messages)));
  requireNone(record, {"tools", "functions"}, "a conversation");
  std::vector<ChatMessage> read;
  for (Json &message : messages)
    try {
      read.push_back(readMessage(message));
    } catch (const InputError &error) {
      throw InputError(fmt::format("message {} of {}: {}", read.size() + 1,
                                   messages.size(), error.what()));
    }
  return render(*options.chat, read);
}

Document readPair(Json &record) {
  Document document{takeText(record, "prompt")};
  size_t begin = document.text.size();
  document.text += takeText(record, "completion");
  document.counted = {{begin, document.text.size()}};
  return document;
}

Json parse(std::string_view line) {
  if (std::string mistake = nestingMistake(line); !mistake.empty())
    throw InputError(mistake);
  try {
    return Json::parse(line);
  } catch (const Json::exception &error) {
    throw InputError(jsonMistake(error.what()));
  }
}

} // namespace

Document readRecord(std::string_view line, const RecordOptions &options) {
  Json record = parse(line);
  if (!record.is_object())
    throw InputError(fmt::format("expected an object, got {}", kindOf(record)));
  if (!options.field.empty())
    return {takeText(record, options.field)};
  if (record.contains("messages"))
    return readConversation(record, options);
  if (record.contains("prompt") && record.contains("completion"))
    return readPair(record);
  if (!record.contains(kTextField))
    throw InputError(fmt::format(
        "expected a field '{}', 'messages', or 'prompt' and 'completion', got "
        "none of them; --field names another field of texts",
        kTextField));
  return {takeText(record, kTextField)};
}

} // namespace rota
