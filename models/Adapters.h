// SPDX-License-Identifier: Apache-2.0
//
// Low-rank adapters of linear layers (Hu et al. 2021).
#ifndef ROTA_MODELS_ADAPTERS_H
#define ROTA_MODELS_ADAPTERS_H

#include "models/Models.h"

#include "llvm/ADT/StringSet.h"

namespace mlir::rota {

/// The linear layers that get adapters, while a model is built.
class Adapters {
public:
  explicit Adapters(const AdapterOptions &options)
      : options(options), uses(options.targets.size()) {}

  bool any() const { return options.rank > 0; }
  int64_t rank() const { return options.rank; }
  double scale() const { return options.alpha / double(options.rank); }

  /// Whether the linear layer with that weight gets an adapter.
  bool addLinear(StringRef weight);
  /// Notes another parameter, which can have none.
  void addOther(StringRef parameter);
  /// Whether `addLinear` has given the layer an adapter.
  bool has(StringRef weight) const { return adapted.contains(weight); }

  /// The mistake in the targets of a model that is built; empty: none.
  std::string mistake() const;

private:
  AdapterOptions options;
  struct Use {
    bool isLinear = false;
    std::string other; // a parameter of that name that is no linear layer
  };
  std::vector<Use> uses; // by target
  llvm::StringSet<> adapted;
  SmallVector<std::string> layers; // last words of all linear layers
};

} // namespace mlir::rota

#endif // ROTA_MODELS_ADAPTERS_H
