// SPDX-License-Identifier: Apache-2.0
//
// The work and the traffic of one rank in each function of the model.
#ifndef ROTA_LOWERING_REPORT_COSTS_H
#define ROTA_LOWERING_REPORT_COSTS_H

#include "ir/rota/cost/Overlap.h"
#include "ir/rota/model/TrainingWork.h"
#include "runtime/program/Program.h"

#include "mlir/IR/BuiltinOps.h"

#include <compare>
#include <map>
#include <string>
#include <vector>

namespace rota {

/// One sort of transfer. All its repetitions in a step are equal in this.
struct TransferFacts {
  std::string kind;   // "all-gather"
  std::string tensor; // the parameter, "activations", a value's type
  std::string axes;   // "data+fsdp"; empty: to and from host memory
  int64_t ranks = 1;  // number that take part
  std::string reason;

  auto operator<=>(const TransferFacts &) const = default;
};

/// One collective inside a function.
struct CollectiveUse {
  TransferFacts facts;
  int64_t bytes = 0;  // sent by one rank
  double seconds = 0; // from its start to its end
  double exposed = 0; // seconds in which the rank does nothing else
  std::string user;   // the first op that needs it, which waits for it
};

/// An amount of one rank, and how the mesh divides it.
struct DividedAmount {
  double rank = 0;  // the fullest rank's
  double whole = 0; // on a mesh of one rank
  /// By axis: of the rank that has most, if that axis had one rank.
  std::map<std::string, double> without;

  void add(const DividedAmount &other, double times);
};

/// The cost of a function for one rank, each time it runs.
struct FunctionCost {
  double flops = 0;
  mlir::rota::TrainingWork training; // operations, of a forward
  double seconds = 0;                // of its ops, without transfers
  /// Seconds of its ops on a host that several ranks share, while no other one
  /// asks for a core.
  double secondsAlone = 0;
  std::vector<CollectiveUse> collectives;
  DividedAmount work; // operations, by `rota.work`
  DividedAmount kept; // bytes that a forward function leaves for its backward

  /// Seconds of all collectives in which the rank does nothing else.
  double exposed() const;
};

/// The cost of each function by the name of its task.
using FunctionCosts = std::map<std::string, FunctionCost>;

/// Reads the operations of a partitioned module, and what it keeps. Composite
/// ops must still be there: kernels may compute something twice.
FunctionCosts functionCosts(mlir::ModuleOp module);

/// Adds the times of the same functions, of which kernels have been formed, and
/// of their collectives, on the module's machine.
void addTimes(mlir::ModuleOp module, FunctionCosts &costs);

/// Calls `call(cost, times)` for all functions that one rank of each stage runs
/// in a step, and how often.
void forEachCall(const Program &program, const FunctionCosts &costs,
                 llvm::function_ref<void(const FunctionCost &, double)> call);

/// Operations that one rank of each stage computes in a step, summed over the
/// stages.
double stepOperations(const Program &program, const FunctionCosts &costs);

} // namespace rota

#endif // ROTA_LOWERING_REPORT_COSTS_H
