// SPDX-License-Identifier: Apache-2.0
//
// Finds patterns in the names of parameters.
#include "ir/rota/model/ParameterNames.h"

#include "ir/rota/model/Model.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::rota;

bool mlir::rota::isInName(StringRef pattern, StringRef name) {
  // Whether a number goes on over the border between both.
  auto cutsNumber = [](StringRef before, StringRef after) {
    return !before.empty() && !after.empty() && llvm::isDigit(before.back()) &&
           llvm::isDigit(after.front());
  };
  for (size_t at = name.find(pattern); at != StringRef::npos;
       at = name.find(pattern, at + 1))
    if (!cutsNumber(name.take_front(at), pattern) &&
        !cutsNumber(pattern, name.drop_front(at + pattern.size())))
      return true;
  return false;
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

InFlightDiagnostic mlir::rota::emitNoMatch(ModuleOp module, StringRef option,
                                           StringRef pattern) {
  constexpr size_t kShown = 4;
  SmallVector<std::string> names;
  module.walk([&](ParamOp param) {
    std::string name = Model::checkpointName(param);
    if (!llvm::is_contained(names, name))
      names.push_back(std::move(name));
  });
  llvm::stable_sort(names, [&](StringRef a, StringRef b) {
    return distanceToPart(pattern, a) < distanceToPart(pattern, b);
  });
  names.truncate(std::min(names.size(), kShown));
  return std::move(
      module.emitError("'")
      << option << "': expected a part of a parameter's name, got '" << pattern
      << "'; the nearest names are '" << llvm::join(names, "', '") << "'");
}
