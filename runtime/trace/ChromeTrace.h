// SPDX-License-Identifier: Apache-2.0
//
// A trace of actions for Perfetto and chrome://tracing.
#ifndef ROTA_RUNTIME_TRACE_CHROMETRACE_H
#define ROTA_RUNTIME_TRACE_CHROMETRACE_H

#include "runtime/program/Program.h"

namespace rota {

/// One run of an action; of one that is asynchronous, the time in which bytes
/// moved.
struct TraceEvent {
  int rank, stage, action;
  int run;           // number of the run of the rank's timeline, from 0
  bool training;     // or evaluation
  double begin, end; // seconds
};

/// JSON text: for each rank a lane of computing and, where it has any, lanes of
/// weights, gradients, forward and backward messages and copies; an event
/// "0F3" for each action, whose argument `run` is that of its TraceEvent.
///
/// If the program has estimates, each of these lanes has one beside it with
/// the planned times of each training run ("rank 0 planned"): those of
/// runClock for ActionTemplate::estimate, from the begin of the run's first
/// event on, times the run's seconds of computing over the planned ones, all
/// ranks together.
std::string chromeTrace(const Program &program,
                        const std::vector<TraceEvent> &events);

} // namespace rota

#endif // ROTA_RUNTIME_TRACE_CHROMETRACE_H
