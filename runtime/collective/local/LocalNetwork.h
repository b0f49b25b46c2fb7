// SPDX-License-Identifier: Apache-2.0
//
// Communicators between threads of one process. A rank's thread that waits
// works on pieces of the rank's transfers, then on other ranks' pieces of the
// transfer that it waits for; while it computes, its helper thread does the
// rank's. Both sleep when there are no pieces. A small transfer is done by the
// last rank to arrive, for all ranks.
#ifndef ROTA_RUNTIME_COLLECTIVE_LOCAL_LOCALNETWORK_H
#define ROTA_RUNTIME_COLLECTIVE_LOCAL_LOCALNETWORK_H

#include "runtime/collective/Communicator.h"

#include <climits>
#include <memory>

namespace rota {

class LocalNetwork {
public:
  /// Starts one helper thread for each rank. Throws RunError when the system
  /// refuses one. The network must outlive the use of its communicators.
  /// `cores`: that the ranks share.
  explicit LocalNetwork(int ranks, int cores = INT_MAX);
  ~LocalNetwork();

  /// The communicator of `rank`, for the one thread that is that rank and the
  /// one beside it in pairs. Transfers inside tasks run only while one of them
  /// waits.
  Communicator &at(int rank);

private:
  class Switch;
  class End;
  std::unique_ptr<Switch> network;
  std::vector<std::unique_ptr<Communicator>> ends;
};

} // namespace rota

#endif // ROTA_RUNTIME_COLLECTIVE_LOCAL_LOCALNETWORK_H
