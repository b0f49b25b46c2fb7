// SPDX-License-Identifier: Apache-2.0
//
// `rota schedule --compare`: several schedules for the same numbers.
#ifndef ROTA_TOOLS_ROTA_COMPARESCHEDULES_H
#define ROTA_TOOLS_ROTA_COMPARESCHEDULES_H

#include "tools/rota/RunOptions.h"

namespace rota {

/// A table of the schedules `options.compare`, or a JSON array of their rows;
/// with `options.sweep`, one table for each of S, 2*S, 4*S and 8*S
/// microbatches. Schedules that demand a placement or a number of chunks have
/// theirs, the others those of the options. The options' costs are those of all
/// layers of a rank; B costs what I and W do unless it is given. A schedule
/// that does not exist for the numbers is a row with an error; `exists` is
/// false when all are.
std::string compareSchedules(const RunOptions &options, bool &exists);

} // namespace rota

#endif // ROTA_TOOLS_ROTA_COMPARESCHEDULES_H
