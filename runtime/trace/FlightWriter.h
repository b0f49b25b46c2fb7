// SPDX-License-Identifier: Apache-2.0
//
// The forms in which events of flight recorders leave a process. Nothing here
// takes memory or locks, so that signal handlers may call it.
#ifndef ROTA_RUNTIME_TRACE_FLIGHTWRITER_H
#define ROTA_RUNTIME_TRACE_FLIGHTWRITER_H

#include "runtime/trace/FlightRecorder.h"

namespace rota {

/// Recorders of a process that are reported, at most.
inline constexpr size_t kMostFlightRecorders = 1024;

struct FlightList {
  std::array<const FlightRecorder *, kMostFlightRecorders> all;
  size_t count = 0;
};

/// Writes the events to an open file in Chrome's trace event format, a lane for
/// each rank. Returns false when that fails.
bool writeFlight(int file, const FlightList &list);

/// Prints a line for each of at most four ranks with its last five events, the
/// newest last: `rank`, then the ranks whose last event is the oldest. `path`:
/// where all events are; empty: nowhere.
void printFlight(int file, const FlightList &list, int rank, const char *path);

} // namespace rota

#endif // ROTA_RUNTIME_TRACE_FLIGHTWRITER_H
