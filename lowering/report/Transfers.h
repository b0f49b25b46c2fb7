// SPDX-License-Identifier: Apache-2.0
//
// Every transfer between ranks in a step: its reason, its time, and how much of
// that time is exposed.
#ifndef ROTA_LOWERING_REPORT_TRANSFERS_H
#define ROTA_LOWERING_REPORT_TRANSFERS_H

#include "ir/pipe/Timeline.h"
#include "lowering/report/TransferEstimates.h"

namespace rota {

/// Transfers of one sort that a rank takes part in during a step, on the stage
/// where they take longest.
struct TransferReport {
  TransferFacts facts;
  int stage = 0;
  int64_t times = 0;  // in a step
  int64_t bytes = 0;  // sent by one rank in a step
  double seconds = 0; // seconds of all of them
  double exposed = 0; // seconds in which the rank does nothing else
  /// The one that waits for it longest: an op, an action ("3B0"), "update" or
  /// "next step". Empty where it is not exposed.
  std::string waiter;

  double hidden() const { return seconds - exposed; }
};

/// Every transfer of `program`, which runs `timeline`, the most exposed first.
/// The simulator finds the exposed time of the timeline's transfers; that of
/// collectives inside functions is what is longer than the work beside them,
/// and those at the end of the step are exposed in full.
std::vector<TransferReport>
explainTransfers(const FunctionCosts &costs, const pipe::Timeline &timeline,
                 const Program &program, const mlir::rota::Machine &machine);

/// Emits a remark (category `communication`) at `loc` for each report.
void remarkTransfers(mlir::Location loc,
                     const std::vector<TransferReport> &reports);

/// The reports as an aligned table.
std::string describeTransfers(const std::vector<TransferReport> &reports,
                              const mlir::rota::Machine &machine);

} // namespace rota

#endif // ROTA_LOWERING_REPORT_TRANSFERS_H
