// SPDX-License-Identifier: Apache-2.0
//
// The times of a rank's computation and transfers on a machine.
#ifndef ROTA_LOWERING_REPORT_TRANSFERESTIMATES_H
#define ROTA_LOWERING_REPORT_TRANSFERESTIMATES_H

#include "ir/rota/cost/Machine.h"
#include "lowering/report/Costs.h"
#include "passes/pipeline/timeline/Simulator.h"
#include "runtime/program/UpdatePlaces.h"

namespace rota {

/// The times of a program's actions. Refers to its arguments.
class TransferEstimates {
public:
  TransferEstimates(const FunctionCosts &costs, const Program &program,
                    const mlir::rota::Machine &machine)
      : costs(costs), program(program), machine(machine) {}

  /// The cost of the function of a task; null where none is known.
  const FunctionCost *costOf(int task) const;

  /// Seconds of a message to another stage.
  double secondsOfMessage(int64_t bytes) const;
  /// Seconds of a collective, and of a transfer; 0 where nothing travels.
  double secondsOf(const Collective &collective) const;
  double secondsOf(const Transfer &transfer) const;

  /// Bytes that one rank sends in a collective.
  int64_t bytesOf(const Collective &collective) const;
  int64_t bytesOf(const Transfer &transfer) const;

  /// The simulator's table. Actions of one kind and chunk cost the same; where
  /// they do not (SUM_GRADs of several rounds), each costs their mean.
  pipe::CostTable costTable(int chunks) const;

  /// The timeline of the program, in seconds.
  std::optional<pipe::Simulation>
  simulate(const pipe::Timeline &timeline) const {
    return pipe::simulate(timeline, costTable(timeline.shape.chunks()));
  }

  /// Seconds of an action: of its calls with the collectives inside them, of
  /// its message, or of its transfers.
  double secondsOf(const Stage &stage, const ActionTemplate &form) const;

  /// The share of its rank's speed that a transfer takes from work beside it:
  /// the mean of its collectives', by their time. Copies to and from host
  /// memory take none.
  double slowsWork(const Stage &stage, const ActionTemplate &form) const;

  /// The collectives of an update of the stage at the end of a step, where
  /// nothing computes: sums of its gradient, and the gather of what it updates.
  std::vector<int> atStepEnd(const Update &update,
                             const InTimeline &done) const;
  /// Seconds of these for all updates.
  double stepEndSeconds(const Stage &stage) const;
  /// Seconds of the work of all updates.
  double updateSeconds(const Stage &stage) const;

  const Program &getProgram() const { return program; }

private:
  mlir::rota::MeshGroup groupOf(const std::vector<int> &axes) const;
  double computeSeconds(const ActionTemplate &form) const;
  /// The share of a lent core's speed that a rank gets: how much sooner a
  /// step's functions end where no other rank asks for a core.
  double lentShare() const;
  double transferSeconds(const Stage &stage, const ActionTemplate &form) const;
  /// The numbers of the collectives that a transfer starts.
  std::vector<int> collectivesOf(const Stage &stage,
                                 const ActionTemplate &form) const;

  const FunctionCosts &costs;
  const Program &program;
  const mlir::rota::Machine &machine;
};

/// Sets ActionTemplate::estimate and slowsWork of all actions of the program.
void addEstimates(const FunctionCosts &costs,
                  const mlir::rota::Machine &machine, Program &program);

} // namespace rota

#endif // ROTA_LOWERING_REPORT_TRANSFERESTIMATES_H
