// SPDX-License-Identifier: Apache-2.0
//
// A request to the search for a plan, and the runs that it may choose of.
#ifndef ROTA_TOOLS_PLANNER_SEARCH_SEARCHREQUEST_H
#define ROTA_TOOLS_PLANNER_SEARCH_SEARCHREQUEST_H

#include "tools/planner/search/LayerCosts.h"

#include <array>
#include <functional>

namespace rota {

/// What the request fixes. Anything that is not there is searched.
struct FixedChoices {
  std::array<std::optional<int64_t>, 7> axes; // in the order of MeshAxis
  std::optional<std::string> schedule, remat;
  std::optional<int64_t> repeats, microbatches, accumulate;
  std::optional<pipe::Placement> placement;
  std::optional<pipe::GatherMode> gathers;
  std::optional<pipe::LayerSplit> split;
  std::optional<bool> splitBackward, shardOptimizer;
  std::optional<mlir::rota::ContextExchange> exchange;

  std::optional<int64_t> axis(mlir::rota::MeshAxis axis) const {
    return axes[static_cast<size_t>(axis)];
  }
};

/// Bounds on the work of a search. All but `seconds` and `threads` are numbers,
/// so that a search that ends in time has one result.
struct SearchLimits {
  int divisions = 48;     // divisions of layers
  int policies = 24;      // further pairs of a division and a policy
  int simulations = 2000; // timelines
  int plans = 48;         // whole plans in order of estimates
  int frontPlans = 8;     // whole plans for the front
  int refined = 2;        // best plans of which variants are tried
  double seconds = 55;    // no new work begins after this time
  int threads = 2;
};

/// The progress of a search, for people.
struct SearchProgress {
  const char *work; // "layers", "timelines", "plans"
  size_t done = 0, all = 0;
  double best = 0; // seconds of the best plan; 0: none yet
};

struct SearchRequest {
  /// The options that are not searched; sizes of the mesh, the timeline's
  /// numbers and the sequences of a microbatch are ignored. `memory` is the
  /// bound of a rank.
  PlanRequest plan;
  FixedChoices fixed;
  int64_t batchSize = 0; // sequences in a step
  int64_t devices = 1;   // ranks
  /// Ranks that are so near that axes within layers span them by default.
  int64_t nodeDevices = 8;
  SearchLimits limits;
  std::function<void(const SearchProgress &)> progress;
};

/// The mistake in the fixed choices, or an empty string.
std::string checkSearch(const SearchRequest &request);

/// The exchange of context of all candidates: `auto`, or the fixed one.
mlir::rota::ContextExchange searchedExchange(const SearchRequest &request);

/// The divisions of layers that a search considers, the likely ones first:
///   - sequence or tensor, and not both, up to nodeDevices
///   - context, of parts of 1024 tokens at least
///   - expert, for models with experts
///   - sequences of a microbatch, up to 16384 tokens on a rank of context
/// An axis that is fixed has its size alone.
std::vector<LayerDivision> searchedDivisions(const SearchRequest &request,
                                             const SearchModel &model);

/// Calls visit(candidate) for all candidates of a division, without a policy.
void forEachCandidate(const SearchRequest &request, const SearchModel &model,
                      const LayerDivision &division,
                      const std::function<void(const PlanCandidate &)> &visit);

} // namespace rota

#endif // ROTA_TOOLS_PLANNER_SEARCH_SEARCHREQUEST_H
