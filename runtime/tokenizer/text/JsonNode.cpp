// SPDX-License-Identifier: Apache-2.0
#include "runtime/tokenizer/text/JsonNode.h"
#include "runtime/Error.h"
#include "runtime/tokenizer/text/Utf8.h"

#include <fmt/format.h>

namespace rota {

/// Pads the place of the file from the place in it.
static std::string joined(const std::string &place, const std::string &part,
                          bool isKey) {
  bool isFile = place.ends_with("'");
  return place + (isFile ? ": " : isKey ? "." : "") + part;
}

void JsonNode::refuse(const std::string &message) const {
  throw InputError(fmt::format("{}: {}", place, message));
}

void JsonNode::fail(const std::string &expected) const {
  std::string got =
      value->dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  if (value->is_structured())
    got = fmt::format("an {} of {}", value->type_name(), value->size());
  constexpr size_t kMost = 80;
  if (got.size() > kMost)
    got = repairUtf8(got.substr(0, kMost)) + "...";
  refuse(fmt::format("expected {}, got {}", expected, got));
}

std::optional<JsonNode> JsonNode::find(const std::string &key) const {
  if (!value->is_object())
    fail("an object");
  auto found = value->find(key);
  if (found == value->end() || found->is_null())
    return std::nullopt;
  return JsonNode(*found, joined(place, key, true));
}

JsonNode JsonNode::at(const std::string &key) const {
  if (auto found = find(key))
    return *found;
  refuse(fmt::format("expected the key '{}'", key));
}

JsonNode JsonNode::element(size_t index) const {
  return {(*value)[index], joined(place, fmt::format("[{}]", index), false)};
}

const std::string &JsonNode::text() const {
  if (!value->is_string())
    fail("a text");
  return value->get_ref<const std::string &>();
}

char32_t JsonNode::character() const {
  size_t at = 0;
  const std::string &string = text();
  char32_t c = string.empty() ? 0 : nextChar(string, at);
  if (string.empty() || at != string.size())
    fail("a text of one character");
  return c;
}

bool JsonNode::boolean() const {
  if (!value->is_boolean())
    fail("true or false");
  return value->get<bool>();
}

double JsonNode::number() const {
  if (!value->is_number())
    fail("a number");
  return value->get<double>();
}

int64_t JsonNode::integer(int64_t least, int64_t most) const {
  bool inRange = value->is_number_integer() &&
                 (!value->is_number_unsigned() ||
                  value->get<uint64_t>() <= static_cast<uint64_t>(most));
  int64_t number = inRange ? value->get<int64_t>() : least - 1;
  if (number < least || number > most)
    fail(fmt::format("an integer from {} to {}", least, most));
  return number;
}

bool JsonNode::boolean(const std::string &key, bool otherwise) const {
  auto found = find(key);
  return found ? found->boolean() : otherwise;
}

std::string JsonNode::text(const std::string &key,
                           const std::string &otherwise) const {
  auto found = find(key);
  return found ? found->text() : otherwise;
}

void JsonNode::forElements(
    const std::function<void(const JsonNode &)> &use) const {
  if (!value->is_array())
    fail("an array");
  for (size_t n = 0; n < value->size(); ++n)
    use(element(n));
}

void JsonNode::forMembers(
    const std::function<void(const std::string &key, const JsonNode &)> &use)
    const {
  if (!value->is_object())
    fail("an object");
  for (const auto &[key, member] : value->items())
    use(key, {member, joined(place, fmt::format("['{}']", key), false)});
}

} // namespace rota
