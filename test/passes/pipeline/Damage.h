// SPDX-License-Identifier: Apache-2.0
//
// Damages valid timelines at random places, and expects the verifier to refuse
// them.
#ifndef ROTA_TEST_PASSES_PIPELINE_DAMAGE_H
#define ROTA_TEST_PASSES_PIPELINE_DAMAGE_H

#include "test/passes/pipeline/Examples.h"

#include <functional>

namespace rota::pipe {

/// A timeline to damage at an action of one rank.
struct DamagePlace {
  Timeline &timeline;
  size_t rank, position;
  std::mt19937 &random;

  std::vector<Action> &row() const { return timeline.ranks[rank]; }
  Action &action() const { return row()[position]; }
  size_t below(size_t end) const { return random() % end; }
  /// Takes the action out.
  Action remove() const {
    Action removed = action();
    row().erase(row().begin() + position);
    return removed;
  }
  /// Puts an action at a random position of a rank.
  void insert(size_t rank, const Action &action) const {
    std::vector<Action> &row = timeline.ranks[rank];
    row.insert(row.begin() + below(row.size() + 1), action);
  }
};

/// Damages a timeline at a place and returns what the verifier must say, which
/// may be empty; nothing where this place cannot be damaged so.
using Damage = std::function<std::optional<std::string>(const DamagePlace &)>;

/// The places of the actions for which `accepts` is true.
inline std::vector<std::pair<size_t, size_t>>
placesOf(const Timeline &timeline,
         const std::function<bool(const Action &)> &accepts) {
  std::vector<std::pair<size_t, size_t>> places;
  for (size_t rank = 0; rank < timeline.ranks.size(); ++rank)
    for (size_t i = 0; i < timeline.ranks[rank].size(); ++i)
      if (accepts(timeline.ranks[rank][i]))
        places.push_back({rank, i});
  return places;
}

/// Damages `count` timelines that `make` makes, each at a random action for
/// which `accepts` is true, and expects an error for each.
inline void expectRefused(
    unsigned seed, int count,
    const std::function<Timeline(std::mt19937 &)> &make, const Damage &damage,
    const std::function<bool(const Action &)> &accepts = [](const Action &) {
      return true;
    }) {
  std::mt19937 random(seed);
  for (int done = 0; done < count;) {
    Timeline timeline = make(random);
    auto places = placesOf(timeline, accepts);
    if (places.empty())
      continue;
    auto [rank, position] = places[random() % places.size()];
    std::string action = toString(timeline.ranks[rank][position]);
    std::optional<std::string> message =
        damage({timeline, rank, position, random});
    if (!message)
      continue;
    ++done;
    std::string said = verified(timeline);
    EXPECT_TRUE(!said.empty() && said.find(*message) != std::string::npos)
        << action << " of rank " << rank << ", got: " << said << "\n"
        << printCsv(timeline.ranks);
  }
}

/// Removes the action.
inline std::optional<std::string> removed(const DamagePlace &place) {
  place.remove();
  return "";
}

} // namespace rota::pipe

#endif // ROTA_TEST_PASSES_PIPELINE_DAMAGE_H
