// SPDX-License-Identifier: Apache-2.0
//
// The communicators of NCCL that a run needs. All ranks make all of them in one
// order when they start, because making one waits for other ranks.
#ifndef ROTA_RUNTIME_COLLECTIVE_NCCL_NCCLPLAN_H
#define ROTA_RUNTIME_COLLECTIVE_NCCL_NCCLPLAN_H

#include "runtime/collective/Communicator.h"
#include "runtime/program/Program.h"

#include <compare>

namespace rota {

/// One sequence of transfers (see Stream): of a group, or of the messages from
/// ranks[0] to ranks[1].
struct NcclRoute {
  Stream stream = Stream::Step;
  bool isMessage = false;
  std::vector<int> ranks;
  auto operator<=>(const NcclRoute &) const = default;
};

class NcclPlan {
public:
  /// Adds a route unless it is there already. A group of one rank needs none.
  void add(NcclRoute route);

  /// Steps of connecting, in the order for all ranks. The routes of one step
  /// have no rank in common.
  const std::vector<std::vector<NcclRoute>> &steps() const { return list; }

  /// The largest number of routes, and of those of groups, that a rank has.
  int mostRoutes() const { return most(/*withMessages=*/true); }
  int mostGroups() const { return most(/*withMessages=*/false); }

private:
  int most(bool withMessages) const;
  std::vector<std::vector<NcclRoute>> list;
};

/// The routes of a program: messages of its timelines; weights, gradients and
/// collectives in tasks; and those of a step's end. Other messages, to rank 0
/// for its files, need none: see NcclCommunicator.
NcclPlan planRoutes(const Program &program);

} // namespace rota

#endif // ROTA_RUNTIME_COLLECTIVE_NCCL_NCCLPLAN_H
