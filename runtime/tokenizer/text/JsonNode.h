// SPDX-License-Identifier: Apache-2.0
//
// A value in a file of JSON, with its place for messages. All functions throw
// InputError that names file, place, what was expected and what is there.
#ifndef ROTA_RUNTIME_TOKENIZER_JSONNODE_H
#define ROTA_RUNTIME_TOKENIZER_JSONNODE_H

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace rota {

class JsonNode {
public:
  /// The root. Both stay alive as long as nodes are used.
  JsonNode(const nlohmann::json &value, std::string place)
      : value(&value), place(std::move(place)) {}

  bool isNull() const { return value->is_null(); }
  bool isArray() const { return value->is_array(); }
  bool isObject() const { return value->is_object(); }
  bool isString() const { return value->is_string(); }

  /// The member of that name; nothing where it is missing or null.
  std::optional<JsonNode> find(const std::string &key) const;
  /// The member of that name, which must be there.
  JsonNode at(const std::string &key) const;
  JsonNode element(size_t index) const;
  size_t size() const { return value->size(); }

  const std::string &text() const;
  /// A text of one character.
  char32_t character() const;
  bool boolean() const;
  double number() const;
  int64_t integer(int64_t least, int64_t most) const;

  /// Members where they are there, else the given value.
  bool boolean(const std::string &key, bool otherwise) const;
  std::string text(const std::string &key, const std::string &otherwise) const;

  void forElements(const std::function<void(const JsonNode &)> &use) const;
  void forMembers(const std::function<void(const std::string &key,
                                           const JsonNode &)> &use) const;

  /// The file and the place in it, as messages begin.
  const std::string &where() const { return place; }
  [[noreturn]] void fail(const std::string &expected) const;
  /// An InputError at this place.
  [[noreturn]] void refuse(const std::string &message) const;

private:
  const nlohmann::json *value;
  std::string place; // "'tokenizer.json': model.merges[3]"
};

} // namespace rota

#endif // ROTA_RUNTIME_TOKENIZER_JSONNODE_H
