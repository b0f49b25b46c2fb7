// SPDX-License-Identifier: Apache-2.0
//
// The list of optimizers, and their options by name.
#include "passes/optimizer/Optimizers.h"

using namespace mlir;
using namespace mlir::rota;

ArrayRef<const OptimizerSpec *> mlir::rota::allOptimizers() {
  static const OptimizerSpec *const optimizers[] = {&defaultOptimizer, &sgd,
                                                    &muon};
  return optimizers;
}

const OptimizerSpec *mlir::rota::findOptimizer(StringRef name) {
  for (const OptimizerSpec *optimizer : allOptimizers())
    if (optimizer->name == name)
      return optimizer;
  return nullptr;
}

std::string mlir::rota::optimizerNames() {
  return llvm::join(llvm::map_range(allOptimizers(),
                                    [](const OptimizerSpec *optimizer) {
                                      return optimizer->name;
                                    }),
                    ", ");
}

const OptimizerSpec::Option *OptimizerSpec::findOption(StringRef name) const {
  const Option *found = llvm::find_if(
      options, [&](const Option &option) { return option.name == name; });
  return found == options.end() ? nullptr : found;
}

SmallVector<StringRef> mlir::rota::optimizersWith(StringRef option) {
  SmallVector<StringRef> names;
  for (const OptimizerSpec *optimizer : allOptimizers())
    if (optimizer->findOption(option) ||
        llvm::is_contained(optimizer->settings, option))
      names.push_back(optimizer->name);
  if (names.size() == allOptimizers().size())
    names.clear();
  return names;
}

std::optional<llvm::StringMap<double>>
mlir::rota::readOptionValues(const OptimizerSpec &optimizer, StringRef text,
                             std::string &error) {
  llvm::StringMap<double> values;
  for (const OptimizerSpec::Option &option : optimizer.options)
    values[option.name] = option.value;
  SmallVector<StringRef> items;
  text.split(items, ',', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
  for (StringRef item : items) {
    auto [name, number] = item.split('=');
    const OptimizerSpec::Option *option = optimizer.findOption(name);
    double value = 0.0;
    if (!option)
      error =
          ("expected an option of '" + optimizer.name + "', got '" + name + "'")
              .str();
    else if (number.getAsDouble(value) ||
             !(value >= option->least && value <= option->most))
      error = ("expected a value of '" + name + "' within its bounds, got '" +
               number + "'")
                  .str();
    if (!error.empty())
      return std::nullopt;
    values[name] = value;
  }
  return values;
}
