// SPDX-License-Identifier: Apache-2.0
//
// What must hold in a program before any rank runs it, so that a broken one is
// refused with a message instead of overwriting memory or waiting for ever.
#ifndef ROTA_RUNTIME_PROGRAM_VERIFY_H
#define ROTA_RUNTIME_PROGRAM_VERIFY_H

#include "runtime/program/Program.h"

namespace rota {

/// "rank 2: chunk 1, microbatch 0, SEND_F to rank 3 (action 7)".
std::string describe(const Program &program, int rank, int action);

/// Checks that every index, rank and offset lies within its bounds, that each
/// send's bytes equal those of the receive it meets, and that the timelines end
/// (no rank waits for something that never comes). Returns false and says what
/// is wrong in `error`.
bool verify(const Program &program, std::string &error);

/// When each action of each rank starts and ends if every rank has a core of
/// its own and action a of rank r takes `seconds[r][a]` (0 for sends and
/// receives): the longest path through order and waits.
struct Clock {
  std::vector<std::vector<double>> end; // [rank][action]
  double makespan = 0.0;
};

/// Returns false and names the ranks that are stuck in `error` when the
/// timelines do not end.
bool runClock(const Program &program,
              const std::vector<std::vector<double>> &seconds, Clock &clock,
              std::string &error);

} // namespace rota

#endif // ROTA_RUNTIME_PROGRAM_VERIFY_H
