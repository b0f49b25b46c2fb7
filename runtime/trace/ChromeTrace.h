// SPDX-License-Identifier: Apache-2.0
//
// A trace of compute actions for Perfetto and chrome://tracing.
#ifndef ROTA_RUNTIME_TRACE_CHROMETRACE_H
#define ROTA_RUNTIME_TRACE_CHROMETRACE_H

#include "runtime/program/Program.h"

namespace rota {

struct TraceEvent {
  int rank, action;
  bool training;     // or evaluation
  double begin, end; // seconds
};

/// JSON text: a thread for each rank, an event "0F3" for each action.
std::string chromeTrace(const Program &program,
                        const std::vector<TraceEvent> &events);

} // namespace rota

#endif // ROTA_RUNTIME_TRACE_CHROMETRACE_H
