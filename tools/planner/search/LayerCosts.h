// SPDX-License-Identifier: Apache-2.0
//
// What the layers of a model cost under one division and one policy, read off
// one plan in which each layer is a chunk.
#ifndef ROTA_TOOLS_PLANNER_SEARCH_LAYERCOSTS_H
#define ROTA_TOOLS_PLANNER_SEARCH_LAYERCOSTS_H

#include "tools/planner/search/PlanCandidate.h"

#include <vector>

namespace rota {

/// The model of a search.
struct SearchModel {
  int64_t layers = 0;
  int64_t experts = 0; // 0: no layer has any
};

/// Reads the model of `request`. Nothing, with the reason in `error`, where
/// there is none.
std::optional<SearchModel> readSearchModel(const PlanRequest &request,
                                           std::string &error);

/// Amounts of a part of the model on a rank, for one microbatch: seconds of
/// actions, and bytes. Parameters are divided as layers are, and no further.
struct PartCost {
  double forward = 0, backward = 0, backwardInput = 0, backwardWeight = 0;
  double stash = 0;          // from F to B or W, but for what is offloaded
  double cotangents = 0;     // from I to W
  double stored = 0;         // parameters that tasks read
  double gradients = 0;      // accumulators
  double optimizer = 0;      // masters beside what is stored, and states
  double wholeOptimizer = 0; // optimizer of all ranks of the division
  double tensors = 0;        // number of parameters

  double seconds() const {
    return forward + backward + backwardInput + backwardWeight;
  }
  /// Seconds from the cotangent of the output to that of the input.
  double turn() const { return backward + backwardInput; }
  PartCost &operator+=(const PartCost &other);
  PartCost operator-(const PartCost &other) const;
};

/// The costs of a model's parts: the embedding, the layers, the loss.
struct LayerCosts {
  std::string error; // why there are none; empty: there are
  /// sums[i]: the first i parts.
  std::vector<PartCost> sums;
  double messageBytes = 0;             // of an activation between layers
  double scratch = 0;                  // bytes of the layer that needs least
  double operations = 0;               // of a rank for a microbatch
  ElementType type = ElementType::F32; // of products

  int64_t layers() const { return int64_t(sums.size()) - 3; }
  const PartCost &all() const { return sums.back(); }
};

/// Plans the model on one stage, a chunk for each part, for one microbatch,
/// with the division, the policy and the backwards of `like`.
LayerCosts layerCosts(const PlanRequest &base, const SearchModel &model,
                      const PlanCandidate &like);

} // namespace rota

#endif // ROTA_TOOLS_PLANNER_SEARCH_LAYERCOSTS_H
