// SPDX-License-Identifier: Apache-2.0
//
// Memory, transfers and profile of each rank, gathered on rank 0 at the end of
// a run.
#ifndef ROTA_RUNTIME_TRAIN_REPORT_RANKREPORT_H
#define ROTA_RUNTIME_TRAIN_REPORT_RANKREPORT_H

#include "runtime/train/step/Executor.h"

namespace rota {

/// One rank's memory and transfers.
struct RankReport {
  int64_t planned = 0;  // bytes of the arena
  int64_t reached = 0;  // planned bytes up to the last that was written
  int64_t resident = 0; // planned bytes in memory
  int64_t host = 0;     // bytes of the host arena
  int64_t peak = 0;     // the highest resident bytes of the rank's process
  ActionTimes::KindTimes transfers;
  double inTasks = 0.0;  // seconds of collectives inside tasks
  TransferTimes stepEnd; // between two runs of the timelines
};

/// The transfers of a kind, all ranks together.
TransferTimes sumOf(const std::vector<RankReport> &ranks, ActionKind kind);

/// Tables of a profile: of tasks, kernels and GEMMs.
struct ProfileTables {
  Profile::Table tasks, kernels, gemms;
};

/// On rank 0 the reports of all ranks, and their profiles added up; nothing on
/// the others. Every rank calls.
std::vector<RankReport> gatherReports(Rank &rank, const Executor &executor);
ProfileTables gatherProfiles(Rank &rank);

/// The events of all ranks so far as a trace, on rank 0; an empty text on the
/// others. Every rank calls.
std::string gatherTrace(Rank &rank, Executor &executor);
/// Writes that trace.
void writeTrace(Rank &rank, Executor &executor, const std::string &path);

} // namespace rota

#endif // ROTA_RUNTIME_TRAIN_REPORT_RANKREPORT_H
