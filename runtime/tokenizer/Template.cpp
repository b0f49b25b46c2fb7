// SPDX-License-Identifier: Apache-2.0
#include "runtime/tokenizer/Template.h"
#include "runtime/tokenizer/models/TokenModel.h"

#include <fmt/format.h>

namespace rota {

namespace {

int32_t readNumber(const JsonNode &node) {
  return static_cast<int32_t>(node.integer(0, kMostTokens - 1));
}

/// Puts tokens around those that are there.
void wrap(Template &out, const std::vector<int32_t> &before,
          const std::vector<int32_t> &after) {
  out.before.insert(out.before.begin(), before.begin(), before.end());
  out.after.insert(out.after.end(), after.begin(), after.end());
}

/// Adds the tokens of a piece that is not the text: {"SpecialToken": {"id"}}.
void addTokens(const JsonNode &piece, const JsonNode &tokens,
               std::vector<int32_t> &out) {
  const std::string &name = piece.at("SpecialToken").at("id").text();
  tokens.at(name).at("ids").forElements(
      [&](const JsonNode &token) { out.push_back(readNumber(token)); });
}

void addTemplate(const JsonNode &node, Template &out) {
  std::vector<int32_t> before, after;
  int texts = 0;
  JsonNode single = node.at("single");
  single.forElements([&](const JsonNode &piece) {
    if (piece.find("Sequence"))
      ++texts;
    else
      addTokens(piece, node.at("special_tokens"), texts > 0 ? after : before);
  });
  if (texts != 1)
    single.refuse(fmt::format("expected one Sequence, got {}", texts));
  wrap(out, before, after);
}

/// A pair of a token's text and its number.
int32_t readPair(const JsonNode &node) {
  if (!node.isArray() || node.size() != 2)
    node.fail("an array of a token and its number");
  return readNumber(node.element(1));
}

void add(const JsonNode &node, Template &out) {
  const std::string &type = node.at("type").text();
  if (type == "Sequence")
    return node.at("processors").forElements([&](const JsonNode &each) {
      add(each, out);
    });
  if (type == "TemplateProcessing")
    return addTemplate(node, out);
  if (type == "BertProcessing" || type == "RobertaProcessing")
    return wrap(out, {readPair(node.at("cls"))}, {readPair(node.at("sep"))});
  // The post-processor ByteLevel changes offsets alone.
  if (type != "ByteLevel")
    node.refuse(fmt::format("the post-processor '{}' is not supported", type));
}

} // namespace

Template readTemplate(const JsonNode &node) {
  Template out;
  add(node, out);
  return out;
}

} // namespace rota
