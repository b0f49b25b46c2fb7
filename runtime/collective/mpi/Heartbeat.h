// SPDX-License-Identifier: Apache-2.0
//
// Heartbeats. Twice a second each rank sends its position to the next one in a
// ring. A rank that receives none for 3.5 seconds reports the one before it.
#ifndef ROTA_RUNTIME_COLLECTIVE_MPI_HEARTBEAT_H
#define ROTA_RUNTIME_COLLECTIVE_MPI_HEARTBEAT_H

#include "runtime/collective/mpi/Library.h"

#include <string>

namespace rota {

/// Used by the thread that calls MPI.
class Heartbeat {
public:
  Heartbeat(const MpiLibrary &mpi, int rank, int size, int tag, double now);

  /// Sends and receives the heartbeats that are due; to be called a few times a
  /// second. True while the rank before is alive.
  bool beat(double now, const std::string &position);
  /// Time and position of the last heartbeat: "1.2 s ago at chunk 2, ...".
  std::string lastHeard() const;
  int before() const { return (rank + size - 1) % size; }
  /// Cancels the open receive; to be called before MPI ends.
  void stop();

private:
  static constexpr int kBytes = 512; // size of a message: text, then zeros
  void listen();

  const MpiLibrary &mpi;
  const int rank, size, tag;
  char sent[kBytes] = {}, received[kBytes] = {};
  MPI_Request sending, receiving;
  std::string heard = "start";
  double lastBeat, lastSend;
  double silence = 0.0; // seconds without a heartbeat, long pauses left out
};

} // namespace rota

#endif // ROTA_RUNTIME_COLLECTIVE_MPI_HEARTBEAT_H
