// SPDX-License-Identifier: Apache-2.0
//
// The tables that layers' forward writes for reports: the load of experts.
// Every rank of the run calls each function, in the same order.
#ifndef ROTA_RUNTIME_TRAIN_STEP_OBSERVED_H
#define ROTA_RUNTIME_TRAIN_STEP_OBSERVED_H

#include "runtime/train/rank/Rank.h"

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace rota {

/// The observations of one name in a step. Counts are those of all sequences of
/// the step, each once, whatever ranks have a copy of them.
struct ObservedStep {
  std::string name;
  // The largest column over the mean of the columns of a layer: of the layer
  // where that is largest, and a mean over layers. From 1 (even) to the number
  // of columns.
  double worst = 0.0, mean = 0.0;
  // Number and share of the choices that rows miss of Observation::each;
  // nothing where that is not known.
  struct Dropped {
    int64_t count = 0;
    double share = 0.0;
  };
  std::optional<Dropped> dropped;
};

/// Brings this rank's tables of the last run to that accumulation step of
/// RuntimeMemory::observed, in the order of the device's work.
void startTables(Rank &rank, int64_t accumulationStep);

/// Writes the means of observations over the microbatches of accumulation steps
/// [0, accumulationSteps) to where the layers of this rank read them, out of
/// the tables that a startTables of each left. The host waits for the device.
void writeMeans(Rank &rank, int64_t accumulationSteps);

/// The observations of a step by name, over all accumulation steps,
/// microbatches and ranks: sums of i32, so the same numbers for every mesh and
/// schedule as long as a column of a layer counts less than 2^31.
class TableSums {
public:
  explicit TableSums(Rank &rank);

  bool isOpen() const { return open; }
  /// Starts adding the tables of all ranks. `result`: the block of
  /// RuntimeMemory::result after a startTables of each accumulation step.
  void start(std::span<const char> result);
  /// Waits for the sums. Once after each start.
  std::vector<ObservedStep> finish();

private:
  struct Columns { // columns of all layers
    std::vector<int32_t> own, all;
  };
  Rank &rank;
  const std::shared_ptr<Columns> columns; // the rank keeps them
  Request request = 0;
  bool open = false;
};

} // namespace rota

#endif // ROTA_RUNTIME_TRAIN_STEP_OBSERVED_H
