// SPDX-License-Identifier: Apache-2.0
//
// Why bytes travel: every transfer between ranks in a step, how long it takes,
// and how much of that nothing hides.
#ifndef ROTA_TOOLS_ROTA_EXPLAIN_H
#define ROTA_TOOLS_ROTA_EXPLAIN_H

#include "ir/pipe/Timeline.h"
#include "runtime/program/Program.h"

#include "mlir/IR/BuiltinOps.h"

#include <compare>
#include <map>
#include <string>
#include <vector>

namespace rota {

/// What one rank is taken to be able to do.
struct Assumptions {
  double flopsPerSecond = 5e11;
  double bytesPerSecond = 1e10; // to and from other ranks, and host memory
  double latency = 5e-6;        // seconds, of each transfer
};

/// What travels, and why: the same for every time that it does.
struct TransferFacts {
  std::string kind;   // "all-gather"
  std::string tensor; // the parameter, "activations", a value's type
  std::string axes;   // "data+fsdp"; empty: to and from host memory
  int64_t ranks = 1;  // that take part together
  std::string reason;

  auto operator<=>(const TransferFacts &) const = default;
};

/// One collective inside a function.
struct CollectiveUse {
  TransferFacts facts;
  int64_t bytes = 0; // that one rank sends
};

/// What a function costs one rank each time it runs.
struct FunctionCost {
  double flops = 0;
  std::vector<CollectiveUse> collectives;
};

/// Of each function of a partitioned module, by the name of its task.
using FunctionCosts = std::map<std::string, FunctionCost>;
FunctionCosts functionCosts(mlir::ModuleOp module);

/// Transfers of one sort that a rank takes part in during a step, on the stage
/// where they take longest.
struct TransferReport {
  TransferFacts facts;
  int stage = 0;
  int64_t times = 0;  // in a step
  int64_t bytes = 0;  // that one rank sends in a step
  double seconds = 0; // of all of them
  double exposed = 0; // of these, in which the rank does nothing else

  double hidden() const { return seconds - exposed; }
};

/// Every transfer of `program`, which `timeline` drives, those with the most
/// exposed time first. What a run of the timeline hides is the simulator's to
/// say; collectives inside functions and those of the step's end are exposed.
std::vector<TransferReport> explainTransfers(const FunctionCosts &costs,
                                             const pipe::Timeline &timeline,
                                             const Program &program,
                                             const Assumptions &assumptions);

/// Emits a remark (category `communication`) at `loc` for each report, with all
/// that it says.
void remarkTransfers(mlir::Location loc,
                     const std::vector<TransferReport> &reports);

/// The reports as an aligned table.
std::string describeTransfers(const std::vector<TransferReport> &reports,
                              const Assumptions &assumptions);

} // namespace rota

#endif // ROTA_TOOLS_ROTA_EXPLAIN_H
