// SPDX-License-Identifier: Apache-2.0
//
// Chrome's trace event format, for Perfetto and chrome://tracing. The compiler
// writes simulated timelines with it, a trainer measured ones.
#ifndef ROTA_RUNTIME_TRACE_TRACEWRITER_H
#define ROTA_RUNTIME_TRACE_TRACEWRITER_H

#include <string>

namespace rota {

/// An action in a trace.
struct TracedAction {
  std::string name; // "0F3"
  std::string category;
  int chunk = 0;
  int microbatch = -1; // -1: the action is about the whole chunk
  int run = -1;        // run of the timeline; -1: there is one
};

/// Collects events. Times are in microseconds. A lane is a thread of the one
/// process; any number names it.
class TraceWriter {
public:
  void nameProcess(const std::string &name);
  /// The lane's title and its position among the lanes.
  void nameLane(int lane, const std::string &name, int position);
  void addSlice(int lane, const TracedAction &action, double begin, double end);
  /// An action that takes no time.
  void addInstant(int lane, const TracedAction &action, double time);
  /// An arrow between two slices, each of which holds its end's time.
  void addArrow(const std::string &name, int fromLane, double from, int toLane,
                double to);

  /// The trace as a JSON object, an event on each line.
  std::string text() const;

private:
  std::string events; // separated by commas
  int arrows = 0;
};

} // namespace rota

#endif // ROTA_RUNTIME_TRACE_TRACEWRITER_H
