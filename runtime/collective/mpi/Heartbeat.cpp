// SPDX-License-Identifier: Apache-2.0
#include "runtime/collective/mpi/Heartbeat.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>

namespace rota {

static constexpr double kPeriod = 0.5, kPatience = 3.5; // seconds
/// Seconds that a longer pause between two calls counts as silence of the peer.
static constexpr double kLongestNap = 0.5;

Heartbeat::Heartbeat(const MpiLibrary &mpi, int rank, int size, int tag,
                     double now)
    : mpi(mpi), rank(rank), size(size), tag(tag), sending(mpi.requestNull),
      receiving(mpi.requestNull), lastBeat(now), lastSend(now - kPeriod) {
  if (size > 1)
    listen();
}

void Heartbeat::listen() {
  mpi.irecv(received, kBytes, mpi.byte, before(), tag, mpi.world, &receiving);
}

bool Heartbeat::beat(double now, const std::string &position) {
  if (size == 1)
    return true;
  silence += std::min(now - lastBeat, kLongestNap);
  lastBeat = now;
  int done = 0;
  while (mpi.test(&receiving, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS &&
         done) {
    received[kBytes - 1] = 0;
    heard = received;
    silence = 0.0;
    listen();
  }
  mpi.test(&sending, &done, MPI_STATUS_IGNORE);
  if (done && now - lastSend >= kPeriod) {
    lastSend = now;
    std::memset(sent, 0, kBytes);
    position.copy(sent, kBytes - 1);
    mpi.isend(sent, kBytes, mpi.byte, (rank + 1) % size, tag, mpi.world,
              &sending);
  }
  return silence < kPatience;
}

std::string Heartbeat::lastHeard() const {
  return fmt::format("{:.1f} s ago at {}", silence, heard);
}

void Heartbeat::stop() {
  if (size == 1)
    return;
  mpi.cancel(&receiving);
  mpi.requestFree(&receiving);
  if (sending != mpi.requestNull)
    mpi.requestFree(&sending);
}

} // namespace rota
