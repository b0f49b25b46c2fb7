// SPDX-License-Identifier: Apache-2.0
//
// Signs of life. Each rank tells the next, in a ring, where it is, twice a
// second; who hears nothing from the one before for 3.5 seconds says so.
#ifndef ROTA_RUNTIME_COLLECTIVE_MPI_HEARTBEAT_H
#define ROTA_RUNTIME_COLLECTIVE_MPI_HEARTBEAT_H

#include "runtime/collective/mpi/Library.h"

#include <string>

namespace rota {

/// Used by the thread that calls MPI.
class Heartbeat {
public:
  Heartbeat(const MpiLibrary &mpi, int rank, int size, int tag, double now);

  /// Sends and receives what is due; to be called a few times a second. True
  /// while the rank before is alive.
  bool beat(double now, const std::string &position);
  /// "1.2 s ago at chunk 2, ...": when and where the rank before was heard.
  std::string lastHeard() const;
  int before() const { return (rank + size - 1) % size; }
  /// Before MPI ends.
  void stop();

private:
  static constexpr int kBytes = 512; // of a message: text, zeros behind it
  void listen();

  const MpiLibrary &mpi;
  const int rank, size, tag;
  char sent[kBytes] = {}, received[kBytes] = {};
  MPI_Request sending, receiving;
  std::string heard = "start";
  double lastBeat, lastSend;
  double silence = 0.0; // seconds that this thread was awake to listen in
};

} // namespace rota

#endif // ROTA_RUNTIME_COLLECTIVE_MPI_HEARTBEAT_H
