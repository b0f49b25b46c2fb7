// SPDX-License-Identifier: Apache-2.0
//
// Reads groups of parameters and finds the parameters.
#include "passes/optimizer/Groups.h"
#include "ir/rota/model/Model.h"
#include "ir/rota/model/ParameterNames.h"

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
    if (isInName(group.pattern, name))
      return &group;
  return nullptr;
}

LogicalResult ParameterGroups::verifyMatches(ModuleOp module) const {
  for (const ParameterGroup &group : groups) {
    WalkResult found = module.walk([&](ParamOp param) {
      return isInName(group.pattern, Model::checkpointName(param))
                 ? WalkResult::interrupt()
                 : WalkResult::advance();
    });
    if (!found.wasInterrupted())
      return emitNoMatch(module, "group", group.pattern);
  }
  return success();
}
