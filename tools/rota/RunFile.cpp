// SPDX-License-Identifier: Apache-2.0
#include "tools/rota/RunFile.h"

#include "runtime/options/Lists.h"
#include "tools/rota/options/OptionTable.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace rota {
namespace {

/// Options that say what is printed or written.
constexpr std::string_view kOutputs[] = {
    "search",  "output", "report", "json",   "explain", "state",
    "remarks", "emit",   "export", "import", "tokens",  "price"};
/// Options that only a divided storage, or replicas, give a meaning: without a
/// setting they go.
constexpr std::string_view kConditional[] = {
    "weight-gather",   "window",     "prefetch",
    "shard-optimizer", "accumulate", "context-exchange"};

template <size_t count>
bool contains(const std::string_view (&names)[count], std::string_view name) {
  return std::ranges::find(names, name) != std::end(names);
}

nlohmann::ordered_json valueOf(const Option &option) {
  if (auto *flag = std::get_if<bool *>(&option.variable))
    return **flag;
  std::vector<std::string> texts = valueTexts(option);
  if (option.isList())
    return texts.size() == 1 ? nlohmann::ordered_json(texts.front())
                             : nlohmann::ordered_json(texts);
  bool isNumber = !std::holds_alternative<std::string *>(option.variable) &&
                  !std::holds_alternative<Choice>(option.variable);
  return isNumber ? nlohmann::ordered_json::parse(texts.front())
                  : nlohmann::ordered_json(texts.front());
}

bool isSet(const std::vector<CandidateSetting> &settings,
           std::string_view name) {
  return std::ranges::find(settings, name, &CandidateSetting::option) !=
         settings.end();
}

} // namespace

nlohmann::ordered_json runFile(RunOptions options,
                               const std::vector<CandidateSetting> &settings) {
  std::vector<Option> table = optionTable(options);
  nlohmann::ordered_json keys = nlohmann::ordered_json::object();
  for (const Option &option : table) {
    bool isKept = options.given.contains(option.name) &&
                  !contains(kOutputs, option.name) &&
                  !contains(kConditional, option.name);
    // Rows of other verbs may have the same name.
    bool isKey = &option == findOption(table, option.name, kRunFileVerbs);
    if (!isKey || (!isKept && !isSet(settings, option.name)))
      continue;
    for (const auto &[name, value] : settings)
      if (name == option.name)
        assignText(option,
                   option.isList() ? splitList(value) : std::vector{value});
    keys[option.name] = valueOf(option);
  }
  return keys;
}

} // namespace rota
