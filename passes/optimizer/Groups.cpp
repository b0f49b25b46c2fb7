// SPDX-License-Identifier: Apache-2.0
//
// Reads groups of parameters and finds the parameters.
#include "passes/optimizer/Groups.h"
#include "ir/rota/model/Model.h"

#include <cmath>

using namespace mlir;
using namespace mlir::rota;

static std::string refuse(const Twine &expected, StringRef got) {
  return ("expected " + expected + ", got '" + got + "'").str();
}

/// Sets a factor of the group from "lr:0.1"; an error, or nothing.
static std::string setFactor(StringRef text, ParameterGroup &group) {
  auto [key, number] = text.split(':');
  std::optional<double> *factor = key == "lr"      ? &group.rate
                                  : key == "decay" ? &group.decay
                                                   : nullptr;
  if (!factor)
    return refuse("'lr:X' or 'decay:X' for '" + group.pattern + "'", text);
  if (*factor)
    return refuse("'" + key + "' once for '" + group.pattern + "'", text);
  double value = 0.0;
  if (number.getAsDouble(value) || !std::isfinite(value) || value < 0.0)
    return refuse("a number of at least 0 for '" + key + "' of '" +
                      group.pattern + "'",
                  number);
  *factor = value;
  return "";
}

std::optional<ParameterGroups> ParameterGroups::read(StringRef text,
                                                     std::string &error) {
  ParameterGroups result;
  SmallVector<StringRef> items;
  StringRef rest = text;
  while (!rest.empty()) {
    size_t end = rest.find_first_of(",;");
    items.push_back(rest.take_front(end));
    rest = end == StringRef::npos ? StringRef() : rest.drop_front(end + 1);
  }
  for (StringRef item : items) {
    auto [pattern, factor] = item.split('=');
    bool isNew = item.contains('=');
    if (isNew ? pattern.empty() : result.groups.empty()) {
      error = refuse("PATTERN=KEY:VALUE,...", item);
      return std::nullopt;
    }
    if (isNew)
      result.groups.push_back({pattern.str(), {}, {}});
    error = setFactor(isNew ? factor : item, result.groups.back());
    if (!error.empty())
      return std::nullopt;
  }
  return result;
}

const ParameterGroup *ParameterGroups::find(StringRef name) const {
  for (const ParameterGroup &group : groups)
    if (name.contains(group.pattern))
      return &group;
  return nullptr;
}

/// Insertions, removals and replacements that turn `pattern` into some part of
/// `name`: Sellers, "The theory and computation of evolutionary distances",
/// 1980.
static size_t distanceToPart(StringRef pattern, StringRef name) {
  auto column = llvm::to_vector(llvm::seq<size_t>(0, pattern.size() + 1));
  size_t best = column.back();
  for (char letter : name) {
    size_t diagonal = column[0];
    for (size_t i = 1; i < column.size(); ++i) {
      size_t replaced = diagonal + (pattern[i - 1] != letter);
      diagonal = column[i];
      column[i] = std::min({column[i - 1] + 1, column[i] + 1, replaced});
    }
    best = std::min(best, column.back());
  }
  return best;
}

LogicalResult ParameterGroups::verifyMatches(ModuleOp module) const {
  SmallVector<std::string> names;
  module.walk(
      [&](ParamOp param) { names.push_back(Model::checkpointName(param)); });
  constexpr size_t kShown = 4;
  for (const ParameterGroup &group : groups) {
    if (llvm::any_of(names, [&](StringRef name) {
          return name.contains(group.pattern);
        }))
      continue;
    llvm::stable_sort(names, [&](StringRef a, StringRef b) {
      return distanceToPart(group.pattern, a) <
             distanceToPart(group.pattern, b);
    });
    names.truncate(std::min(names.size(), kShown));
    return module.emitError("'group': expected a part of a parameter's name, "
                            "got '")
           << group.pattern << "'; the nearest names are '"
           << llvm::join(names, "', '") << "'";
  }
  return success();
}
