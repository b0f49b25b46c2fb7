// SPDX-License-Identifier: Apache-2.0
//
// Communicators between threads of one process. Whoever waits works: a rank's
// thread that waits takes pieces of its own transfers, and its helper thread
// takes them while it computes. Both sleep when there is nothing to take. What
// is small is done by the last rank to come, for all.
#ifndef ROTA_RUNTIME_COLLECTIVE_LOCAL_LOCALNETWORK_H
#define ROTA_RUNTIME_COLLECTIVE_LOCAL_LOCALNETWORK_H

#include "runtime/collective/Communicator.h"

#include <memory>

namespace rota {

class LocalNetwork {
public:
  /// Starts one helper thread a rank. The network outlives the use of its
  /// communicators.
  explicit LocalNetwork(int ranks);
  ~LocalNetwork();

  /// The end of `rank`, for the one thread that is that rank. Transfers in
  /// Stream::Task run only while that thread waits.
  Communicator &at(int rank);

private:
  class Switch;
  class End;
  std::unique_ptr<Switch> network;
  std::vector<std::unique_ptr<End>> ends;
};

} // namespace rota

#endif // ROTA_RUNTIME_COLLECTIVE_LOCAL_LOCALNETWORK_H
