// SPDX-License-Identifier: Apache-2.0
//
// Checks a program before any rank runs it, so that a broken one is refused
// with a message instead of overwriting memory or waiting for ever.
#ifndef ROTA_RUNTIME_PROGRAM_VERIFY_H
#define ROTA_RUNTIME_PROGRAM_VERIFY_H

#include "runtime/program/Program.h"
#include "runtime/program/SteadyState.h"

namespace rota {

/// "stage 2: chunk 1, microbatch 0, SEND_F to stage 3 (action 7)".
std::string describe(const Program &program, int stage, int action);
/// "chunk 1, microbatch 0, SEND_F to rank 6 (action 7)", where `peer` is "rank
/// 6".
std::string describe(const Stage &stage, int action, const std::string &peer);

/// Checks that the mesh fits the stages, that every index, stage and offset
/// lies within its bounds, that divisions, collectives and places agree in
/// size, that each send's bytes equal those of the receive it meets, and that
/// the timelines end (no stage waits for something that never comes). Returns
/// false and says what is wrong in `error`.
bool verify(const Program &program, std::string &error);

/// The part of it that is about one stage's actions and the calls before a
/// step: templates, slots and waits are there, and addresses lie in the arenas.
bool verifyActions(const Program &program, int stage, std::string &error);

/// The run of the timelines if every rank has a core of its own and action a of
/// stage s takes `seconds[s][a]`: the longest path through order and waits.
/// Transfers run beside the actions after them, those of one kind of a stage
/// one after the other, and may slow the stage's work down. All messages have
/// the latency of the slowest send.
struct Clock {
  // [stage][action]; of a message or transfer, the time in which bytes move.
  std::vector<std::vector<double>> begin, end;
  // [stage][kind]: time of these actions in which the stage waits for them, as
  // an executor waits: for messages first.
  std::vector<std::array<double, kActionKindCount>> exposed;
  StepEnds ends; // [stage], when it has waited for all that it started
  double makespan = 0.0;
};

/// Where the seconds of actions come from.
enum class ActionSeconds {
  Measured, // with what transfers beside them took
  Planned,  // without: transfers take their ActionTemplate::slowsWork
};

/// Returns false and names the stage that is stuck in `error` when the
/// timelines do not end. `begins` are the times at which the stages begin; by
/// default all begin at 0.
bool runClock(const Program &program,
              const std::vector<std::vector<double>> &seconds,
              ActionSeconds source, Clock &clock, std::string &error,
              const StepEnds &begins = {});

/// The seconds of a step in the steady state of a run without step
/// barriers. Returns false as runClock does.
bool runSteadyClock(const Program &program,
                    const std::vector<std::vector<double>> &seconds,
                    ActionSeconds source, double &step, std::string &error);

} // namespace rota

#endif // ROTA_RUNTIME_PROGRAM_VERIFY_H
