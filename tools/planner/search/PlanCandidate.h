// SPDX-License-Identifier: Apache-2.0
//
// A run that a search considers, and the part of it that decides the costs of
// its layers.
#ifndef ROTA_TOOLS_PLANNER_SEARCH_PLANCANDIDATE_H
#define ROTA_TOOLS_PLANNER_SEARCH_PLANCANDIDATE_H

#include "ir/rota/sharding/MeshText.h"
#include "tools/planner/Request.h"

#include <compare>
#include <vector>

namespace rota {

/// The division of a layer: the mesh axes within a layer, and the sequences of
/// a microbatch on a rank. Neither the other axes nor the timeline change what
/// a layer costs.
struct LayerDivision {
  int64_t expert = 1, context = 1, sequence = 1, tensor = 1;
  int64_t sequences = 1;

  int64_t ranks() const { return expert * context * sequence * tensor; }
  auto operator<=>(const LayerDivision &) const = default;
};

/// What a search may choose of a run.
struct PlanCandidate {
  LayerDivision layer;
  int64_t data = 1, stages = 1, fsdp = 1;
  std::string schedule;
  int64_t repeats = 1, microbatches = 1, accumulate = 1;
  pipe::Placement placement = pipe::Placement::Loop;
  pipe::GatherMode gathers = pipe::GatherMode::Auto; // Auto without fsdp
  pipe::LayerSplit split = pipe::LayerSplit::Even;
  std::string remat;
  bool splitBackward = false;
  bool shardOptimizer = false;
  mlir::rota::ContextExchange exchange = mlir::rota::ContextExchange::Gather;

  int64_t ranks() const { return data * stages * fsdp * layer.ranks(); }
  pipe::Shape shape() const {
    return {int(stages), int(repeats), int(microbatches), placement};
  }
  std::string meshText() const;
};

/// An option of `rota`, as its flag or its key.
struct CandidateSetting {
  std::string option, value;
};

/// The options that make a run of the candidate. Flags have the value "true".
std::vector<CandidateSetting> settingsOf(const PlanCandidate &candidate);
/// Whether a search chooses the option where it is not fixed.
bool isSearched(std::string_view option);
/// "--mesh data=4,stage=8 --schedule 1f1b ...".
std::string flagsOf(const PlanCandidate &candidate);

/// The candidate as a request, with the other options of `base`. Nothing of it
/// is left open.
PlanRequest requestOf(const PlanRequest &base, const PlanCandidate &candidate);

} // namespace rota

#endif // ROTA_TOOLS_PLANNER_SEARCH_PLANCANDIDATE_H
