// SPDX-License-Identifier: Apache-2.0
//
// The times of a step that the compiler's estimates give.
#ifndef ROTA_RUNTIME_TRACE_PLANNEDTIMES_H
#define ROTA_RUNTIME_TRACE_PLANNEDTIMES_H

#include "runtime/program/Verify.h"

#include <optional>

namespace rota {

/// The clock of the program's timelines with ActionTemplate::estimate as the
/// seconds of each action; nothing where no computation has an estimate.
std::optional<Clock> plannedTimes(const Program &program);

/// The seconds of a step by the same estimates, in the steady state of a run
/// without step barriers.
std::optional<double> plannedSteadySeconds(const Program &program);

} // namespace rota

#endif // ROTA_RUNTIME_TRACE_PLANNEDTIMES_H
