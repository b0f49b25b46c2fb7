// SPDX-License-Identifier: Apache-2.0
//
// Finds the layers that targets name, as PEFT does.
#include "models/Adapters.h"

#include "runtime/program/AdapterNames.h"

using namespace mlir;
using namespace mlir::rota;

/// A target is a layer's name or the end of it, in whole words.
static bool isNamed(StringRef layer, StringRef target) {
  return layer.consume_back(target) && (layer.empty() || layer.back() == '.');
}

bool Adapters::addLinear(StringRef weight) {
  StringRef layer = weight;
  if (!any() || !layer.consume_back(::rota::kWeightEnd))
    return false;
  StringRef word = layer.rsplit('.').second;
  if (std::string name = (word.empty() ? layer : word).str();
      !llvm::is_contained(layers, name))
    layers.push_back(std::move(name));
  bool isTarget = false;
  for (auto [target, use] : llvm::zip(options.targets, uses))
    if (isNamed(layer, target))
      use.isLinear = isTarget = true;
  if (isTarget)
    adapted.insert(weight);
  return isTarget;
}

void Adapters::addOther(StringRef parameter) {
  StringRef layer = parameter;
  if (!layer.consume_back(::rota::kWeightEnd))
    return;
  for (auto [target, use] : llvm::zip(options.targets, uses))
    if (isNamed(layer, target))
      use.other = parameter.str();
}

std::string Adapters::mistake() const {
  for (auto [target, use] : llvm::zip(options.targets, uses)) {
    if (layers.empty())
      return "expected a model with linear layers of [out, in], which adapters "
             "are for; this one has none for '" +
             target + "'";
    if (!use.other.empty())
      return "expected names of linear layers alone, got '" + target +
             "', by which '" + use.other + "' goes";
    if (!use.isLinear)
      return "expected names of linear layers out of " +
             llvm::join(layers, ", ") + ", got '" + target + "'";
  }
  return "";
}
